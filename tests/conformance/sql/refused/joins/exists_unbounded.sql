-- EXISTS without a bound
-- given: A, B

SELECT ts FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.srcIP = A.srcIP)

--- error at 1:46
this join could never forget a row: nothing bounds how far apart in time matching rows may be. Bound the times, A.ts >= B.ts - 60 AND A.ts <= B.ts + 60 for example, or make them equal
