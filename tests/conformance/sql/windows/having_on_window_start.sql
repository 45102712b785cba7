-- A condition on the window bounds what is kept below it
-- given: M

SELECT window_start, flag, count(*) AS n FROM M [RANGE 2 minutes, SLIDE 1 minute]
GROUP BY flag HAVING window_start >= TIMESTAMP '2024-03-01 00:00:00'

--- oracle
SELECT window_start, flag, count(*) AS n
FROM (SELECT unnest(starts(ts, 120, 60)) AS window_start, * FROM M)
WHERE window_start >= TIMESTAMP '2024-03-01 00:00:00'
GROUP BY window_start, flag
