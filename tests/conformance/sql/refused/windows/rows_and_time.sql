-- Rows and time mixed
-- given: M

SELECT count(*) FROM M [RANGE 10 ROWS, SLIDE 1 minute]

--- error at 1:24
RANGE counts rows, so SLIDE counts rows too: SLIDE 10 ROWS
