-- ORDER BY a column the result does not have
-- given: M

SELECT srcIP, len FROM M ORDER BY ts

--- error at 1:35
ORDER BY: the result has no column 'ts' (it has srcIP, len)
