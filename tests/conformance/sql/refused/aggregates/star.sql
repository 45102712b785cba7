-- * does not go with aggregates
-- given: M

SELECT *, count(*) FROM M [RANGE 1 min]

--- error at 1:8
an aggregate query lists its columns; * does not go with it
