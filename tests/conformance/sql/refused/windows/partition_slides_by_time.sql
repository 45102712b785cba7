-- Rows are counted by key, so the window slides by rows
-- given: M

SELECT srcIP, count(*) FROM M [PARTITION BY srcIP, RANGE 1 minute, SLIDE 10 seconds]

--- error at 1:31
a window with PARTITION BY counts the rows of each key, so it slides by rows: SLIDE 1 ROW. Windows
of time have GROUP BY
