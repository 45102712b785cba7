-- A function of texts over a number
-- given: M

SELECT ts, upper(len) AS x FROM M

--- error at 1:12
cannot use this expression: a String is wanted, and this is i64
