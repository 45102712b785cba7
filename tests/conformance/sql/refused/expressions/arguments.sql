-- Too many arguments
-- given: M

SELECT ts, upper(flag, 2) AS x FROM M

--- error at 1:25
cannot read this: the number of provided arguments (2) is greater than the maximum number of
supported arguments (1)
