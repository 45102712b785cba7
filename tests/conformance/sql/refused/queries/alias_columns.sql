-- An alias with names of columns
-- given: M

SELECT * FROM M AS x (a, b)

--- error at 1:23
names for the columns of a source are given inside it, with AS
