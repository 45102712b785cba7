-- JOIN with nothing
-- given: M

SELECT * FROM M JOIN

--- error at 1:17
cannot read this: the name of a source is missing here
