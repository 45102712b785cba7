-- QUALIFY
-- given: M

SELECT ts FROM M QUALIFY row_number() OVER (ORDER BY ts) = 1

--- error at 1:26
QUALIFY looks at other rows; put a window and an aggregate instead
