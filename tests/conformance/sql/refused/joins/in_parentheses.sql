-- A join in parentheses
-- given: A, B

SELECT * FROM (A JOIN B ON A.ts = B.ts)

--- error at 1:23
a join in parentheses is written as a query: (SELECT ... FROM a JOIN b ON ...) AS c
