-- Digits with two decimal points
-- given: M

SELECT ts, len + .2.3 AS x FROM M

--- error at 1:18
this is no number
