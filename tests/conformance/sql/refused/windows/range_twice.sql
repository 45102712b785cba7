-- RANGE twice
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, RANGE 2 minutes]

--- error at 1:41
cannot read this: RANGE is given twice
