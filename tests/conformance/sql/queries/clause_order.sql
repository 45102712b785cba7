-- The clauses of a query in any order, and a comma too many at the end of a list
-- given: M

SELECT srcIP, count(*) AS n FROM M [RANGE 1 minute] GROUP BY srcIP WHERE len > 75

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, srcIP AS srcIP, count(*) AS n
FROM M WHERE len > 75 GROUP BY ALL
