-- VALUES as a source
-- given: M

SELECT * FROM (VALUES (1, 2)) AS x

--- error at 1:24
a source is the name of a stream, a union of such, or a query in parentheses
