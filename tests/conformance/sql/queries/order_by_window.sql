-- ORDER BY the start of the window
-- given: M1, M2
-- in order of: window_start

SELECT srcIP, count(*) AS n FROM M1 UNION M2 [RANGE 1 minute, SLIDE 20 seconds] GROUP BY srcIP
ORDER BY window_start

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, srcIP AS srcIP, count(*) AS n
FROM (SELECT unnest(starts(ts, 60, 20)) AS window_start, * FROM (FROM M1 UNION ALL FROM M2))
GROUP BY window_start, srcIP
