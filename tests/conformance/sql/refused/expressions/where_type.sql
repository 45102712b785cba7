-- WHERE is true or false
-- given: M

SELECT ts FROM M
WHERE len

--- error at 2:7
a condition must be true or false; this is Int64
