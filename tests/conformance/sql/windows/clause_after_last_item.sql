-- The same clause after every aggregate is one clause
-- given: M

SELECT srcIP, count(*) [RANGE 1 minute], max(len) [RANGE 1 minute] FROM M GROUP BY srcIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, count(*) AS count, max(len) AS max FROM M GROUP BY ALL
