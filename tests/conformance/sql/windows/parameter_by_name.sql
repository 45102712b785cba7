-- A parameter by its name alone
-- given: M, n = 2

SELECT count(*) AS c FROM M [RANGE n minutes]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, count(*) AS c
FROM (SELECT unnest(starts(ts, 120, 120)) AS window_start FROM M) GROUP BY window_start
