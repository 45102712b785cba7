-- Casts
-- given: Mixed

SELECT id, ts, CAST(i AS VARCHAR) AS a, CAST(small AS DOUBLE) AS b, CAST(yes AS INT) AS c,
       TRY_CAST(t AS INT) AS d, CAST(ts AS DATE) AS e, CAST(day AS TIMESTAMP) AS g, small::bigint AS h,
       CAST('7' AS INT) AS j
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, CAST(i AS VARCHAR) AS a, CAST(small AS DOUBLE) AS b, CAST(yes AS INT) AS c,
       TRY_CAST(t AS INT) AS d, CAST(ts AS DATE) AS e, CAST(day AS TIMESTAMP) AS g, small::bigint AS h,
       CAST('7' AS INT) AS j
FROM Mixed
