-- A number compared with a text
-- given: M

SELECT ts FROM M WHERE len = 'long'

--- error at 1:24
cannot use this expression: cannot compare string with numeric type (i64)
