-- EXISTS in the same ten seconds
-- given: A, B

SELECT ts, srcIP FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.ts/10 = A.ts/10 AND B.srcIP = A.destIP)

--- oracle
SELECT ts AS ts, srcIP AS srcIP FROM A
WHERE EXISTS (SELECT 1 FROM B WHERE bucket(B.ts, 10) = bucket(A.ts, 10) AND B.srcIP = A.destIP)
