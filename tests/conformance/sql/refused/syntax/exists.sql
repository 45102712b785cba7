-- EXISTS without a query
-- given: M

SELECT ts FROM M WHERE EXISTS ()

--- error at 1:32
cannot read this: something is missing here
