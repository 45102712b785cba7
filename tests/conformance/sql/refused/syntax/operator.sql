-- An operand is missing
-- given: M

SELECT ts FROM M WHERE len > AND flag = 'x'

--- error at 1:30
cannot read this: something is missing here
