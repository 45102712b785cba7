-- A band on the difference of the times
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts - B.ts <= 8 AND A.ts - B.ts > -3

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts <= B.ts + INTERVAL 8 SECOND AND A.ts > B.ts - INTERVAL 3 SECOND
