-- The same inside an expression
-- given: M

SELECT upper(srcIP) || flag, count(*) FROM M [RANGE 1 min] GROUP BY upper(srcIP)

--- error at 1:24
'flag' is neither in GROUP BY nor inside an aggregate
