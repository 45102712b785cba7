-- Conditions without columns, in WHERE and in ON
-- given: A, B, wanted = 1

SELECT A.ts FROM A JOIN B ON A.ts = B.ts AND 1 = 1 WHERE :wanted = 1

--- oracle
SELECT A.ts AS ts FROM A JOIN B ON A.ts = B.ts
