-- Window functions
-- given: M

SELECT ts, row_number() OVER (PARTITION BY srcIP ORDER BY ts) FROM M

--- error at 1:12
OVER looks at other rows; put a window after the source, [RANGE 1 minute, WA ts], and an aggregate
over it; for the last 10 rows of each key, [PARTITION BY key, RANGE 10 ROWS, SLIDE 1 ROW]
