-- A window of rows on a source of a join
-- given: A, B

SELECT * FROM A [RANGE 10 ROWS], B [RANGE 10 ROWS]

--- error at 1:17
the window of a join's source is a RANGE of time
