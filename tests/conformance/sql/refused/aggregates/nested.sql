-- An aggregate inside an aggregate
-- given: M

SELECT sum(count(*)) FROM M [RANGE 1 min]

--- error at 1:12
an aggregate inside an aggregate: compute the inner one in a query in FROM
