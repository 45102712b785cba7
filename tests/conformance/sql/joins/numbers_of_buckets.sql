-- Answers per minute joined with those of the minute before, by the numbers of the minutes
-- given: A, B

SELECT x.b, x.n, y.n FROM (SELECT ts/60 AS b, count(*) AS n FROM A GROUP BY 1) x
JOIN (SELECT ts/60 AS b, count(*) AS n FROM B GROUP BY 1) y ON x.b = y.b + 1

--- oracle
SELECT x.b AS b, x.n AS x_n, y.n AS y_n
FROM (SELECT bucket(ts, 60) AS b, count(*) AS n FROM A GROUP BY ALL) x
JOIN (SELECT bucket(ts, 60) AS b, count(*) AS n FROM B GROUP BY ALL) y ON x.b = y.b + 1
