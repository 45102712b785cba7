-- HAVING on the window itself, without groups
-- given: M

SELECT count(*) AS n FROM M [RANGE 1 minute]
HAVING window_start >= '2024-02-29 23:57:00' AND window_end < TIMESTAMP '2024-03-01 00:00:00'

--- oracle
SELECT date_trunc('minute', ts) AS window_start,
       date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M WHERE ts >= '2024-02-29 23:57:00' AND ts < '2024-02-29 23:59:00' GROUP BY ALL
