-- A negative length
-- given: M

SELECT count(*) FROM M [RANGE -5 seconds]

--- error at 1:31
RANGE is a length of time above zero
