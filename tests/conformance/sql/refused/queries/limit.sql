-- LIMIT
-- given: M

SELECT ts FROM M LIMIT 10

--- error at 1:24
a stream has no end, so LIMIT cannot be counted from there
