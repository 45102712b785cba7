-- GROUP BY a position that is not there
-- given: M

SELECT srcIP, count(*) FROM M [RANGE 1 minute] GROUP BY 3

--- error at 1:57
GROUP BY 3: the select list has 2 items
