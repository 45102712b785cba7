-- LATERAL
-- given: A, B

SELECT * FROM A, LATERAL (SELECT * FROM B WHERE B.ts = A.ts) x

--- error at 1:34
a source is the name of a stream, a union of such, or a query in parentheses
