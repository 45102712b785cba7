-- A group that is not in the select list
-- given: M

SELECT count(*) AS n FROM M [RANGE 1 minute] GROUP BY srcIP

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M GROUP BY date_trunc('minute', ts), srcIP
