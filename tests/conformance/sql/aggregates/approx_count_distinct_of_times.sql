-- Distinct times and days, about
-- given: Mixed

SELECT approx_count_distinct(day) AS days, approx_count_distinct(seen) AS moments,
       approx_count_distinct(yes) AS truths, approx_count_distinct(f) AS fs
FROM Mixed [RANGE 20 seconds]

--- oracle
SELECT time_bucket(INTERVAL 20 SECOND, ts) AS window_start,
       time_bucket(INTERVAL 20 SECOND, ts) + INTERVAL 20 SECOND AS window_end,
       count(DISTINCT day) AS days, count(DISTINCT seen) AS moments,
       count(DISTINCT yes) AS truths, count(DISTINCT f) AS fs
FROM Mixed GROUP BY ALL
