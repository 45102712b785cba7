-- The parts of a window clause come in any order: WA first
-- given: M

SELECT count(*) AS n FROM M [wa ts, slide 30 sec, range 1 min]

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 60, 30)) AS window_start FROM M) GROUP BY window_start
