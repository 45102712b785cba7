-- A number that ends where its exponent should be
-- given: M

SELECT ts, len * 1e AS x FROM M

--- error at 1:18
this is no number
