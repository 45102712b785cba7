-- Rows of the same ten seconds, and equal values
-- given: A, B

SELECT A.ts, B.ts FROM A, B WHERE A.ts/10 = B.ts/10 AND A.srcIP = B.srcIP

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE bucket(A.ts, 10) = bucket(B.ts, 10) AND A.srcIP = B.srcIP
