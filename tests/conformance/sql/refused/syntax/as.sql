-- AS without a name
-- given: M

SELECT ts AS FROM M

--- error at 1:19
cannot read this: it does not belong here
