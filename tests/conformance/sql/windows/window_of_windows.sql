-- The busiest minute of every five: a window over the answers of a window
-- given: M

SELECT max(n) AS busiest
FROM (SELECT count(*) AS n FROM M [RANGE 1 minute]) AS minutes [RANGE 5 minutes, WA window_start]

--- oracle
SELECT time_bucket(INTERVAL 5 MINUTE, m) AS window_start,
       time_bucket(INTERVAL 5 MINUTE, m) + INTERVAL 5 MINUTE AS window_end, max(n) AS busiest
FROM (SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS m, count(*) AS n FROM M GROUP BY ALL) GROUP BY ALL
