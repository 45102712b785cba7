-- OFFSET
-- given: M

SELECT ts FROM M OFFSET 10

--- error at 1:25
a stream has no end, so OFFSET cannot be counted from there
