-- HAVING is true or false
-- given: M

SELECT count(*) FROM M [RANGE 1 min] HAVING count(*)

--- error at 1:45
a condition must be true or false; this is Int64
