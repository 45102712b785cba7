-- Half a row
-- given: M

SELECT count(*) FROM M [RANGE 2.5 ROWS]

--- error at 1:31
RANGE takes a whole number of rows above zero
