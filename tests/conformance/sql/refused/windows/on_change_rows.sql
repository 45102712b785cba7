-- A window of rows has no time at which rows leave
-- given: M

SELECT count(*) FROM M [RANGE 10 ROWS, SLIDE ON CHANGE]

--- error at 1:46
SLIDE ON CHANGE goes with a RANGE of time, not of rows
