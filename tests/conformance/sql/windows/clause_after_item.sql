-- The clause after the first of several aggregates is that of all
-- given: M

SELECT count(*) [RANGE 1 minute] AS n, max(len) AS most FROM M

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       count(*) AS n, max(len) AS most FROM M GROUP BY ALL
