-- WITH inside a query in parentheses
-- given: M

SELECT count(*) AS n FROM (WITH x AS (SELECT ts FROM M WHERE len = 40) SELECT * FROM x) AS y [RANGE 1 minute]

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M WHERE len = 40 GROUP BY ALL
