-- NaN is a number that equals itself and is greater than all others

SELECT ts, greatest(v, 1.5) AS a, least(v, 1.5) AS b, isnan(v) AS c, v = v AS d, v > 1e300 AS e
FROM (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS L

--- stream K
ts | k | v
1 | n | 1.5
2 | a | 2.5
3 | a | null
4 | a | -1.0

--- oracle
SELECT ts AS ts, greatest(v, 1.5) AS a, least(v, 1.5) AS b, isnan(v) AS c, v = v AS d, v > 1e300 AS e
FROM (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS L
