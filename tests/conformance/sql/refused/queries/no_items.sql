-- Nothing selected
-- given: M

SELECT FROM M

--- error at 1:13
SELECT lists nothing; use * for all columns
