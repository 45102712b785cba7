-- FILTER: aggregates over some of the rows
-- given: M

SELECT count(*) FILTER (WHERE len > 700) AS big, sum(len) FILTER (WHERE flag = 'SYN') AS syn,
       count(DISTINCT srcIP) FILTER (WHERE len IS NULL) AS hosts, count(*) AS n
FROM M [RANGE 2 minutes]

--- oracle
SELECT time_bucket(INTERVAL 2 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 2 MINUTE, ts) + INTERVAL 2 MINUTE AS window_end,
       count(*) FILTER (WHERE len > 700) AS big,
       CAST(sum(len) FILTER (WHERE flag = 'SYN') AS BIGINT) AS syn,
       count(DISTINCT srcIP) FILTER (WHERE len IS NULL) AS hosts, count(*) AS n
FROM M GROUP BY ALL
