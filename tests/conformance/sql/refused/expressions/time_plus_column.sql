-- A time and a column of numbers
-- given: M

SELECT * FROM M WHERE
   len + ts > 3

--- error at 2:4
cannot use this expression: + not allowed on i64 and datetime[μs]
