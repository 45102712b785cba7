-- FROM twice
-- given: M

SELECT ts FROM M FROM M

--- error at 1:18
cannot read this: it does not belong here
