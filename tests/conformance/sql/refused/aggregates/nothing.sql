-- A window with nothing to aggregate
-- given: M

SELECT srcIP FROM M [RANGE 1 min]

--- error at 1:8
'srcIP' is neither in GROUP BY nor inside an aggregate
