-- A band that does not hold the row's own time
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 20 AND A.ts - 10

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - INTERVAL 20 SECOND AND A.ts - INTERVAL 10 SECOND
