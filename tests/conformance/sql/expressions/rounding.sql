-- round goes away from zero at a half; a cast to a whole number goes to the nearest, of two the even
-- given: Mixed

SELECT id, ts, round(f) AS a, round(f, 1) AS b, round(f * 100, -1) AS c, CAST(f AS BIGINT) AS d, f::int AS e,
       round(i) AS g
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, round(f) AS a, round(f, 1) AS b, round(f * 100, -1) AS c, CAST(f AS BIGINT) AS d, f::int AS e,
       round(i) AS g
FROM Mixed
