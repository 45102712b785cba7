-- Two operators
-- given: M

SELECT ts FROM M WHERE len >> > 3

--- error at 1:31
cannot read this: something is missing here
