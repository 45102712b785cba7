-- Groups by a time that was cut, by position
-- given: M

SELECT date_trunc('minute', ts) AS m, flag, count(*) AS n FROM M GROUP BY 1, 2

--- oracle
SELECT date_trunc('minute', ts) AS m, flag AS flag, count(*) AS n FROM M GROUP BY ALL
