-- The clause before the source's alias
-- given: M

SELECT count(p.len) AS n FROM M [RANGE 1 minute, WA ts] p

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end, count(len) AS n
FROM M GROUP BY ALL
