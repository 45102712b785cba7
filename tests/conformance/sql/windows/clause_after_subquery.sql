-- The clause after a query in parentheses
-- given: M

SELECT count(*) AS n FROM (SELECT ts, len FROM M WHERE len > 100) AS big [RANGE 1 minute]

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M WHERE len > 100 GROUP BY ALL
