-- Answers that leave lazily are the same
-- given: M

SELECT srcIP, count(*) AS n
FROM M [RANGE 20 seconds, SLIDE 10 seconds, FLUSH LAZY WITHIN 1 WINDOW] GROUP BY srcIP

--- oracle
SELECT window_start, window_start + INTERVAL 20 SECOND AS window_end, srcIP, count(*) AS n
FROM (SELECT unnest(starts(ts, 20, 10)) AS window_start, * FROM M) GROUP BY window_start, srcIP
