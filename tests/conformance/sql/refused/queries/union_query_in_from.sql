-- After UNION in FROM, parentheses are a query of their own
-- given: A, B

SELECT U.ts FROM A UNION (SELECT * FROM B) AS U WHERE U.len > 500

--- error at 1:55
after a query in parentheses, WHERE takes a SELECT of its own around it
