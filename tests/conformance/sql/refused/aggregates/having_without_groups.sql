-- HAVING without aggregates or window
-- given: M

SELECT ts FROM M HAVING len > 3

--- error at 1:8
'ts' is neither in GROUP BY nor inside an aggregate
