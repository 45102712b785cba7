-- Rows kept as they are until their windows close
-- given: M

SELECT srcIP, count(*) AS n
FROM M [RANGE 20 seconds, SLIDE 15 seconds, KEEP ROWS] GROUP BY srcIP

--- oracle
SELECT window_start, window_start + INTERVAL 20 SECOND AS window_end, srcIP, count(*) AS n
FROM (SELECT unnest(starts(ts, 20, 15)) AS window_start, * FROM M) GROUP BY window_start, srcIP
