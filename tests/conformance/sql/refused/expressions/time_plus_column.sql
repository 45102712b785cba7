-- A time and a column of numbers
-- given: M

SELECT * FROM M WHERE
   len + ts > 3

--- error at 2:4
TIMESTAMP + BIGINT is not defined
