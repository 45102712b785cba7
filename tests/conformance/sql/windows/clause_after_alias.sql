-- The clause after the source's alias
-- given: M

SELECT count(*) AS n FROM M AS packets [RANGE 1 minute, WA packets.ts]

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M GROUP BY ALL
