-- Columns of one name become source_column; others get a number
-- given: A, B

SELECT A.ts, B.ts, A.len + 1, B.len + 1, A.srcIP FROM A, B WHERE A.ts = B.ts

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts, A.len + 1 AS "column", B.len + 1 AS column_2, A.srcIP AS srcIP
FROM A, B WHERE A.ts = B.ts
