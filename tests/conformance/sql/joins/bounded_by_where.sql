-- A condition on the time of one side bounds both sides of a join
-- given: M, A

SELECT M.ts, A.ts AS other, M.len FROM M, A
WHERE M.srcIP = A.srcIP AND A.ts BETWEEN M.ts - INTERVAL 30 SECONDS AND M.ts + INTERVAL 30 SECONDS
  AND M.ts >= '2024-03-01 00:00:00'

--- oracle
SELECT M.ts, A.ts AS other, M.len FROM M, A
WHERE M.srcIP = A.srcIP AND A.ts BETWEEN M.ts - INTERVAL 30 SECONDS AND M.ts + INTERVAL 30 SECONDS
  AND M.ts >= TIMESTAMP '2024-03-01 00:00:00'
