-- An aggregate in WHERE
-- given: M

SELECT srcIP, count(*) FROM M [RANGE 1 min] WHERE count(*) > 3 GROUP BY srcIP

--- error at 1:51
WHERE comes before aggregates; use HAVING
