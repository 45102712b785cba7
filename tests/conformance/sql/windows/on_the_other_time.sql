-- A window over a join on either of its times
-- given: A, B

SELECT count(*) AS n [RANGE 1 minute, SLIDE 30 seconds, WA B.ts]
FROM A, B WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - 10 AND B.ts

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(B.ts, 60, 30)) AS window_start FROM A, B
      WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - INTERVAL 10 SECOND AND B.ts)
GROUP BY window_start
