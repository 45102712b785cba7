-- Positions and lengths count characters; nothing of a null is null

SELECT ts, strpos(s, 'l') AS a, strpos(s, '') AS b, position('d' IN s) AS c, left(s, 0) AS d,
       right(s, 0) AS e, left(s, 2) AS f, right(s, 2) AS g, replace(s, '', '+') AS h,
       replace(s, 'ö', 'oe') AS i, contains(s, 'ö') AS j, strpos(s, s) AS k, length(s) AS l
FROM K

--- stream K
ts | s
1 | wörld
2 | null
3 | łódź-l
4 | null
5 | x

--- oracle
SELECT ts AS ts, strpos(s, 'l') AS a, strpos(s, '') AS b, position('d' IN s) AS c, left(s, 0) AS d,
       right(s, 0) AS e, left(s, 2) AS f, right(s, 2) AS g, replace(s, '', '+') AS h,
       replace(s, 'ö', 'oe') AS i, contains(s, 'ö') AS j, strpos(s, s) AS k, length(s) AS l
FROM K
