-- HAVING on an aggregate that is not listed
-- given: M

SELECT srcIP, max(len) AS most FROM M [RANGE 1 minute] GROUP BY srcIP
HAVING count(*) >= 6 AND max(len) > 100

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, max(len) AS most
FROM M GROUP BY ALL HAVING count(*) >= 6 AND max(len) > 100
