-- A column that is neither grouped nor aggregated
-- given: M

SELECT srcIP, len, count(*) FROM M [RANGE 1 min] GROUP BY srcIP

--- error at 1:15
'len' is neither in GROUP BY nor inside an aggregate
