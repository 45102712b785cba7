-- sum of nothing
-- given: M

SELECT sum() FROM M [RANGE 1 min]

--- error at 1:12
cannot read this: something is missing here
