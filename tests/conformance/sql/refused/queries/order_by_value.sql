-- ORDER BY a column that does not progress
-- given: M

SELECT ts, len FROM M ORDER BY len

--- error at 1:32
a stream can be ordered by a progressing attribute only (here: ts), and 'len' is none
