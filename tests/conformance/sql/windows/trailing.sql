-- A trailing WINDOW over one source
-- given: M

SELECT srcIP, count(*) AS n FROM M WHERE len > 75 GROUP BY srcIP WINDOW 2 minutes

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, srcIP AS srcIP, count(*) AS n
FROM (SELECT unnest(starts(ts, 120, 120)) AS window_start, * FROM M WHERE len > 75)
GROUP BY window_start, srcIP
