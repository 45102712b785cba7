-- RANGE alone tumbles, on the stream's own time
-- given: M

SELECT count(*) AS n FROM M [RANGE 45 s]

--- oracle
SELECT window_start, window_start + INTERVAL 45 SECOND AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 45, 45)) AS window_start FROM M) GROUP BY window_start
