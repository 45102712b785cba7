-- Answers of windows joined on the window's start
-- given: A, B

SELECT a.window_start AS minute, a.n, b.n AS others
FROM (SELECT count(*) AS n FROM A [RANGE 1 minute]) a
JOIN (SELECT count(*) AS n FROM B [RANGE 1 minute]) b ON a.window_start = b.window_start

--- oracle
SELECT a.m AS minute, a.n AS n, b.n AS others
FROM (SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM A GROUP BY m) a
JOIN (SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM B GROUP BY m) b ON a.m = b.m
