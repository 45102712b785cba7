-- A keyword in place of a name
-- given: M

SELECT select FROM M

--- error at 1:8
cannot read this: it does not belong here
