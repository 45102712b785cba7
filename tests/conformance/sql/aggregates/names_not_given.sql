-- What aggregates are called that were given no name; the same one twice
-- given: M

SELECT count(*), COUNT(len), Sum(len), max(len), MAX(srcPort), count(*) FROM M [RANGE 5 minutes]

--- oracle
SELECT time_bucket(INTERVAL 5 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 5 MINUTE, ts) + INTERVAL 5 MINUTE AS window_end,
       count(*) AS count, count(len) AS count_2, CAST(sum(len) AS BIGINT) AS sum,
       max(len) AS max, max(srcPort) AS max_2, count(*) AS count_3
FROM M GROUP BY ALL
