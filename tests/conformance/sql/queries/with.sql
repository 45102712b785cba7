-- WITH, one view over another, used twice
-- given: M

WITH big AS (SELECT srcIP, len, ts FROM M WHERE len > 500),
     named AS (SELECT 'host ' || srcIP AS host, len, ts FROM big)
SELECT a.host, count(*) AS n [RANGE 2 minutes, WA a.ts]
FROM named a JOIN named b ON a.host = b.host AND b.ts BETWEEN a.ts - 20 AND a.ts + 20
GROUP BY a.host

--- oracle
SELECT time_bucket(INTERVAL 2 MINUTE, a.ts) AS window_start,
       time_bucket(INTERVAL 2 MINUTE, a.ts) + INTERVAL 2 MINUTE AS window_end,
       'host ' || a.srcIP AS host, count(*) AS n
FROM M a JOIN M b ON a.srcIP = b.srcIP AND a.len > 500 AND b.len > 500
 AND b.ts BETWEEN a.ts - INTERVAL 20 SECOND AND a.ts + INTERVAL 20 SECOND
GROUP BY ALL
