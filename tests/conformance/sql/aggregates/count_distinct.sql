-- COUNT(DISTINCT ...) of a column and of an expression
-- given: M

SELECT count(DISTINCT srcIP) AS hosts, count(DISTINCT srcIP || destIP) AS pairs,
       COUNT(DISTINCT len) AS sizes
FROM M [RANGE 2 minutes, SLIDE 1 minute]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end,
       count(DISTINCT srcIP) AS hosts, count(DISTINCT srcIP || destIP) AS pairs,
       count(DISTINCT len) AS sizes
FROM (SELECT unnest(starts(ts, 120, 60)) AS window_start, * FROM M) GROUP BY window_start
