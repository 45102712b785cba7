-- CASE in both forms, coalesce and nullif
-- given: Mixed

SELECT id, ts, CASE WHEN i > 5 THEN 'big' WHEN i > 0 THEN 'small' END AS a,
       CASE small WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END AS b,
       coalesce(s, t, 'none') AS c, nullif(i, 7) AS d, CASE WHEN yes THEN f ELSE i END AS e,
       if(i > 0, 1, 2) AS f
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, CASE WHEN i > 5 THEN 'big' WHEN i > 0 THEN 'small' END AS a,
       CASE small WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END AS b,
       coalesce(s, t, 'none') AS c, nullif(i, 7) AS d, CASE WHEN yes THEN f ELSE i END AS e,
       if(i > 0, 1, 2) AS f
FROM Mixed
