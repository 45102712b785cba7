-- ORDER BY two columns
-- given: M

SELECT ts, len FROM M ORDER BY ts, len

--- error at 1:36
a stream is ordered by one progressing attribute
