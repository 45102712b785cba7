-- Functions of texts
-- given: Mixed

SELECT id, ts, upper(s) AS a, lower(s) AS b, length(s) AS c, substr(s, 1, 2) AS d, trim(s) AS e,
       replace(s, '-', '+') AS f, left(s, 2) AS g, right(s, 1) AS h, s || t AS i,
       concat(s, '/', t) AS j, concat_ws('-', s, t) AS k, starts_with(s, 'A') AS l,
       strpos(s, '-') AS m, split_part(s, '-', 2) AS n, reverse(s) AS o, contains(s, 'b') AS p
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, upper(s) AS a, lower(s) AS b, length(s) AS c, substr(s, 1, 2) AS d, trim(s) AS e,
       replace(s, '-', '+') AS f, left(s, 2) AS g, right(s, 1) AS h, s || t AS i,
       concat(s, '/', t) AS j, concat_ws('-', s, t) AS k, starts_with(s, 'A') AS l,
       strpos(s, '-') AS m, split_part(s, '-', 2) AS n, reverse(s) AS o, contains(s, 'b') AS p
FROM Mixed
