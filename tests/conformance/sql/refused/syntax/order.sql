-- ORDER without BY
-- given: M

SELECT ts FROM M ORDER ts

--- error at 1:24
cannot read this: it does not belong here
