-- EXISTS inside OR
-- given: A, B

SELECT ts FROM A WHERE len > 5 OR EXISTS (SELECT 1 FROM B WHERE B.ts = A.ts)

--- error at 1:50
a query inside a condition is EXISTS (...) or NOT EXISTS (...), joined to the others by AND
