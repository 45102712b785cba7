-- WITH and names of columns
-- given: M

WITH x (a, b) AS (SELECT ts, len FROM M) SELECT * FROM x

--- error at 1:9
names for the columns of a source are given inside it, with AS
