-- LIMIT after a union
-- given: A, B

SELECT ts FROM A UNION ALL SELECT ts FROM B LIMIT 10

--- error at 1:51
a stream has no end, so LIMIT cannot be counted from there
