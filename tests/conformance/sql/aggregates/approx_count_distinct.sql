-- approx_count_distinct is exact for a few values
-- given: M

SELECT approx_count_distinct(len) AS sizes, approx_count_distinct(srcIP),
       approx_count_distinct(len) FILTER (WHERE flag = 'ACK') AS acks
FROM M [RANGE 2 minutes, SLIDE 30 seconds]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end,
       count(DISTINCT len) AS sizes, count(DISTINCT srcIP) AS approx_count_distinct,
       count(DISTINCT len) FILTER (WHERE flag = 'ACK') AS acks
FROM (SELECT unnest(starts(ts, 120, 30)) AS window_start, * FROM M) GROUP BY window_start
