-- An argument too many
-- given: M

SELECT ts, floor(len / 3, 1) AS x FROM M

--- error at 1:18
cannot use this expression: floor and ceil take one argument
