-- A band with INTERVAL literals
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts >= A.ts - INTERVAL '5' SECOND AND B.ts < A.ts + INTERVAL '1 minute'

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts >= A.ts - INTERVAL 5 SECOND AND B.ts < A.ts + INTERVAL 60 SECOND
