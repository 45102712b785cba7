-- CROSS JOIN with the bound in WHERE
-- given: A, B

SELECT A.ts, A.len, B.len FROM A CROSS JOIN B WHERE A.ts = B.ts

--- oracle
SELECT A.ts AS ts, A.len AS A_len, B.len AS B_len FROM A, B WHERE A.ts = B.ts
