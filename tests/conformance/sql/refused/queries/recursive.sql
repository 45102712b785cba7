-- A recursive WITH
-- given: M

WITH RECURSIVE x AS (SELECT * FROM M) SELECT * FROM x

--- error at 1:16
a stream's query cannot be recursive
