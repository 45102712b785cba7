-- HAVING on a name given in the select list, and on a group
-- given: M

SELECT srcIP, count(*) AS n FROM M [RANGE 1 minute] GROUP BY srcIP
HAVING n > 3 AND srcIP <> '10.0.0.1'

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, count(*) AS n
FROM M WHERE srcIP <> '10.0.0.1' GROUP BY ALL HAVING count(*) > 3
