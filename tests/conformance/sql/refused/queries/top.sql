-- TOP
-- given: M

SELECT TOP 5 ts FROM M

--- error at 1:12
cannot read this: it does not belong here
