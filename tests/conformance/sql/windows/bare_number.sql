-- A bare number is seconds
-- given: M

SELECT count(*) AS n FROM M [RANGE 120, SLIDE 30]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 120, 30)) AS window_start FROM M) GROUP BY window_start
