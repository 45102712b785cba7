-- HOP takes the slide first, then the length
-- given: M

SELECT window_start, count(*) AS n
FROM HOP(TABLE M, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' MINUTES)
GROUP BY window_start, window_end

--- oracle
SELECT window_start, count(*) AS n
FROM (SELECT unnest(starts(ts, 180, 60)) AS window_start FROM M) GROUP BY window_start
