-- A trailing WINDOW over a join that aggregates nothing bounds the join
-- given: A, B

SELECT A.ts, B.ts FROM A, B WHERE A.srcIP = B.srcIP AND A.len > 1000 WINDOW 30 seconds

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.len > 1000
  AND B.ts >= A.ts - INTERVAL 30 SECOND AND B.ts <= A.ts + INTERVAL 30 SECOND
