-- Who names one edge of the window gets that one only
-- given: M

SELECT window_end AS until, count(*) AS n FROM M [RANGE 1 minute]

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS until, count(*) AS n
FROM M GROUP BY ALL
