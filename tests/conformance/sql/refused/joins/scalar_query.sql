-- A query as a value
-- given: A, B

SELECT ts, (SELECT max(len) FROM B) FROM A

--- error at 1:20
a query stands in FROM, not in an expression
