-- Fractions and other units of time
-- given: Ticks

SELECT count(*) AS n FROM Ticks [RANGE 1.5 minutes, SLIDE 500 ms]

--- oracle
SELECT window_start, window_start + INTERVAL 90 SECOND AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 90, 0.5)) AS window_start FROM Ticks) GROUP BY window_start
