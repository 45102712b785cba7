-- A difference BETWEEN two lengths
-- given: A, B

SELECT A.ts, B.ts FROM A, B WHERE A.srcIP = B.srcIP AND A.ts - B.ts BETWEEN -3 AND 8

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - INTERVAL 3 SECOND AND B.ts + INTERVAL 8 SECOND
