-- A time column of whole seconds
-- given: Steps

SELECT k, count(*) AS n, sum(v) AS total FROM Steps [RANGE 10 seconds, SLIDE 5 seconds] GROUP BY k

--- oracle
SELECT window_start, window_start + 10 AS window_end, k AS k, count(*) AS n,
       CAST(sum(v) AS BIGINT) AS total
FROM (SELECT unnest(whole_starts(ts, 10, 5)) AS window_start, * FROM Steps) GROUP BY window_start, k
