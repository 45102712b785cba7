-- UNION with nothing
-- given: M

SELECT count(*) FROM M UNION [RANGE 1 min]

--- error at 1:30
cannot read this: the name of a source is missing here
