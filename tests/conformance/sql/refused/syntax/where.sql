-- A condition is missing
-- given: M

SELECT * FROM M WHERE

--- error at 1:17
cannot read this: something is missing here
