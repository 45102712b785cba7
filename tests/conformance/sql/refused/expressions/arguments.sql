-- Too many arguments
-- given: M

SELECT ts, upper(flag, 2) AS x FROM M

--- error at 1:12
upper takes 1 argument, and 2 are given
