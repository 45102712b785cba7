-- FILTER needs a condition
-- given: M

SELECT count(*) FILTER (WHERE len) FROM M [RANGE 1 min]

--- error at 1:31
a condition must be true or false; this is Int64
