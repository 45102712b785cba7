-- The clause after an aggregate inside an expression
-- given: M

SELECT sum(len) [RANGE 1 min] / count(*) AS mean FROM M

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, sum(len) / count(*) AS mean
FROM M GROUP BY ALL
