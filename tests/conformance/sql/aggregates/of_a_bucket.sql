-- The aggregate of a bucket, and a filter on one
-- given: Steps

SELECT max(ts/10) AS last, count(*) AS n FROM Steps [RANGE 20 seconds] WHERE ts/10 <> 2

--- oracle
SELECT ts // 20 * 20 AS window_start, ts // 20 * 20 + 20 AS window_end, max(ts // 10) AS last,
       count(*) AS n
FROM Steps WHERE ts // 10 <> 2 GROUP BY ALL
