-- TUMBLE, as in other systems
-- given: M

SELECT window_start, window_end, srcIP, count(*) AS n
FROM TABLE(TUMBLE(TABLE M, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, srcIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, count(*) AS n
FROM M GROUP BY ALL
