-- DISTINCT over answers of a window
-- given: M

SELECT DISTINCT window_start, count(*) AS n FROM M [RANGE 1 minute] GROUP BY srcIP

--- oracle
SELECT DISTINCT date_trunc('minute', ts) AS window_start, count(*) AS n FROM M
GROUP BY date_trunc('minute', ts), srcIP
