-- HAVING without an aggregate in the list
-- given: M

SELECT srcIP FROM M [RANGE 1 minute] GROUP BY srcIP HAVING count(*) > 6

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, srcIP AS srcIP
FROM M GROUP BY ALL HAVING count(*) > 6
