-- Hosts that were active in each minute
-- given: M

SELECT DISTINCT date_trunc('minute', ts) AS m, srcIP FROM M WHERE len > 75

--- oracle
SELECT DISTINCT date_trunc('minute', ts) AS m, srcIP AS srcIP FROM M WHERE len > 75
