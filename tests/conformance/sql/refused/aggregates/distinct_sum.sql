-- DISTINCT goes with count
-- given: M

SELECT sum(DISTINCT len) FROM M [RANGE 1 min]

--- error at 1:8
sum(DISTINCT ...) is not supported; count(DISTINCT ...) is
