-- Parameters in the clause: with a colon, by name, as a text
-- given: M, n = 2, step = '30 seconds'

SELECT count(*) AS n FROM M [RANGE :n minutes, SLIDE :step]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 120, 30)) AS window_start FROM M) GROUP BY window_start
