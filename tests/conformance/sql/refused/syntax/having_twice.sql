-- HAVING twice
-- given: M

SELECT count(*) FROM M [RANGE 1 min] HAVING count(*) > 1 HAVING count(*) > 2

--- error at 1:58
cannot read this: found multiple 'HAVING' clauses
