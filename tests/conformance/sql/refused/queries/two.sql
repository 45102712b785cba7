-- Two queries
-- given: M

SELECT * FROM M; SELECT ts FROM M

--- error at 1:25
one query is expected, and this text holds 2 statements; several go into a pipeline file, for the
command lowwater run
