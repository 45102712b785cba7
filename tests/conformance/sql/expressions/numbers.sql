-- Functions of numbers; / is the true quotient
-- given: Mixed

SELECT id, ts, i + small AS a, i * 2 AS b, i / 2 AS c, i % 5 AS d, abs(i) AS e, floor(f) AS g, ceil(f) AS h,
       sqrt(abs(f)) AS j, power(f, 2) AS k, sign(f) AS l, greatest(i, small) AS m, least(i, small) AS n,
       -f AS o, ln(abs(f) + 1) AS p, log10(abs(f) + 1) AS q, mod(small, 7) AS r
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, i + small AS a, i * 2 AS b, i / 2 AS c, i % 5 AS d, abs(i) AS e, floor(f) AS g, ceil(f) AS h,
       sqrt(abs(f)) AS j, power(f, 2) AS k, sign(f) AS l, greatest(i, small) AS m, least(i, small) AS n,
       -f AS o, ln(abs(f) + 1) AS p, log10(abs(f) + 1) AS q, mod(small, 7) AS r
FROM Mixed
