-- A text and a number
-- given: M

SELECT ts, srcIP + 1 AS x FROM M

--- error at 1:12
+ takes numbers, and this is VARCHAR
