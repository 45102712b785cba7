-- NaN joins NaN, null joins nothing, and zero joins zero of either sign

SELECT A.ts, B.ts AS other
FROM (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS A
JOIN (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS B
ON A.v = B.v AND A.ts <= B.ts + 9 AND A.ts >= B.ts - 9

--- stream K
ts | k | v
1 | n | 1.5
2 | a | 0.0
3 | a | null
4 | a | -0.0
5 | n | 2.5

--- oracle
SELECT A.ts AS ts, B.ts AS other
FROM (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS A
JOIN (SELECT ts, CASE WHEN k = 'n' THEN CAST('nan' AS DOUBLE) ELSE v END AS v FROM K) AS B
ON A.v = B.v AND abs(A.ts - B.ts) <= 9
