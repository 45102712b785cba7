-- A length of nothing
-- given: M

SELECT count(*) FROM M [RANGE 0 seconds]

--- error at 1:31
RANGE is a length of time above zero
