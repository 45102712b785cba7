-- Words after the end
-- given: M

SELECT ts FROM M WHERE len > 3 please and thank you

--- error at 1:32
cannot read this: it does not belong here
