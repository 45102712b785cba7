-- The parts of a window clause come in any order: SLIDE first
-- given: M

SELECT count(*) AS n FROM M [SLIDE 30 seconds, WA ts, RANGE 1 minute]

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 60, 30)) AS window_start FROM M) GROUP BY window_start
