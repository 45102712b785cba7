-- The groups are the keys
-- given: M

SELECT srcIP, flag, count(*) FROM M [PARTITION BY srcIP, RANGE 10 ROWS] GROUP BY srcIP, flag

--- error at 1:37
a window that slides by rows counts the rows of each key (srcIP), and its groups are these keys,
not (srcIP, flag). Name the groups by PARTITION BY
