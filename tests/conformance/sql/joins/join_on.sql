-- JOIN ... ON
-- given: A, B

SELECT x.ts, y.len FROM A AS x JOIN B AS y
ON x.srcIP = y.destIP AND y.ts BETWEEN x.ts - 10 AND x.ts + 10 AND x.len < y.len

--- oracle
SELECT x.ts AS ts, y.len AS len FROM A AS x JOIN B AS y
ON x.srcIP = y.destIP AND y.ts BETWEEN x.ts - INTERVAL 10 SECOND AND x.ts + INTERVAL 10 SECOND
AND x.len < y.len
