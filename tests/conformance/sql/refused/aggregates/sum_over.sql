-- An aggregate over other rows
-- given: M

SELECT ts, sum(len) OVER (ORDER BY ts) FROM M

--- error at 1:12
OVER looks at other rows; put a window after the source, [RANGE 1 minute, WA ts], and an aggregate
over it; for the last 10 rows of each key, [PARTITION BY key, RANGE 10 ROWS, SLIDE 1 ROW]
