-- Truth with three values
-- given: Mixed

SELECT id, ts, yes AND i > 0 AS a, yes OR i > 0 AS b, NOT yes AS c, yes IS TRUE AS d, yes IS NOT FALSE AS e,
       i IS NULL AS f, i BETWEEN 0 AND 10 AS g, i IN (1, 7) AS h, i NOT IN (1, 7) AS j,
       s LIKE 'A%' AS k, s NOT LIKE '%a%' AS l, s ILIKE 'a%' AS m, i IS DISTINCT FROM small AS n
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, yes AND i > 0 AS a, yes OR i > 0 AS b, NOT yes AS c, yes IS TRUE AS d, yes IS NOT FALSE AS e,
       i IS NULL AS f, i BETWEEN 0 AND 10 AS g, i IN (1, 7) AS h, i NOT IN (1, 7) AS j,
       s LIKE 'A%' AS k, s NOT LIKE '%a%' AS l, s ILIKE 'a%' AS m, i IS DISTINCT FROM small AS n
FROM Mixed
