-- Parameters of every type
-- given: Mixed, n = 7, share = 0.5, word = 'Abc', sure = True, none = None

SELECT id, ts, i + :n AS a, f * :share AS b, coalesce(:none, s) AS c, n AS d FROM Mixed
WHERE (i = n OR s = :word) AND yes = :sure

--- oracle
SELECT id AS id, ts AS ts, i + 7 AS a, f * 0.5 AS b, s AS c, 7 AS d FROM Mixed
WHERE (i = 7 OR s = 'Abc') AND yes
