-- The time of the results, which every source calls ts, and how they are put in order
-- given: A, B
-- in order of: at

SELECT A.srcIP, GREATEST(A.ts, B.ts) AS at
FROM A, B WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 20 AND A.ts + 9 AND A.len > 80
ORDER BY ts USING FILTER-ORDER

--- oracle
SELECT A.srcIP AS srcIP, greatest(A.ts, B.ts) AS at
FROM A, B WHERE A.srcIP = B.srcIP AND A.len > 80
  AND B.ts BETWEEN A.ts - INTERVAL 20 SECOND AND A.ts + INTERVAL 9 SECOND
