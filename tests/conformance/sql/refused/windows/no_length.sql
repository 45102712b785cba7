-- RANGE without a length
-- given: M

SELECT count(*) FROM M [RANGE , WA ts]

--- error at 1:31
cannot read this: a length is missing, for example 5 minutes
