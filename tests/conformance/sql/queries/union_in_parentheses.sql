-- Queries in parentheses, and a window over their union
-- given: A, B

SELECT srcIP, count(*) AS n
FROM ((SELECT ts, srcIP FROM A) UNION ALL (SELECT ts, srcIP FROM B WHERE len > 75)) AS both [RANGE 1 minute]
GROUP BY srcIP

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, srcIP AS srcIP, count(*) AS n
FROM (SELECT ts, srcIP FROM A UNION ALL SELECT ts, srcIP FROM B WHERE len > 75) GROUP BY ALL
