-- The bound of answers that leave slowly may be a length of time
-- given: M

SELECT srcIP, count(*) AS n
FROM M [RANGE 20 seconds, FLUSH SLOW EVERY 10 ROWS WITHIN 15 SECONDS] GROUP BY srcIP

--- oracle
SELECT window_start, window_start + INTERVAL 20 SECOND AS window_end, srcIP, count(*) AS n
FROM (SELECT unnest(starts(ts, 20, 20)) AS window_start, * FROM M) GROUP BY window_start, srcIP
