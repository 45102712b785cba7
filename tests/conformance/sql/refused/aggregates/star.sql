-- * does not go with aggregates
-- given: M

SELECT *, count(*) FROM M [RANGE 1 min]

--- error at 1:8
an aggregate query lists its columns; * cannot stand for them
