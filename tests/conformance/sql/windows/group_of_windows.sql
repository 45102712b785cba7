-- The busiest host of each minute: groups by the start of a window
-- given: M

SELECT window_start, max(n) AS busiest
FROM (SELECT srcIP, count(*) AS n FROM M [RANGE 1 minute] GROUP BY srcIP)
GROUP BY window_start

--- oracle
SELECT m AS window_start, max(n) AS busiest
FROM (SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS m, srcIP, count(*) AS n FROM M GROUP BY ALL)
GROUP BY m
