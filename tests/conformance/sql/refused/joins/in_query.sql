-- IN with a query
-- given: A, B

SELECT ts FROM A WHERE srcIP IN (SELECT srcIP FROM B)

--- error at 1:41
a query inside a condition is EXISTS (...) or NOT EXISTS (...), joined to the others by AND
