-- The bounds of a band as parameters
-- given: A, B, before = 5, after = 9

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts >= A.ts - :before AND B.ts <= A.ts + after

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - INTERVAL 5 SECOND AND A.ts + INTERVAL 9 SECOND
