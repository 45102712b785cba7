-- An aggregate as a group
-- given: M

SELECT count(*), max(len) FROM M [RANGE 1 min] GROUP BY max(len)

--- error at 1:57
a group cannot be an aggregate
