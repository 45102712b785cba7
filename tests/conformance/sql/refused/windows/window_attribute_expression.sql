-- WA of an expression
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, WA ts/10]

--- error at 1:46
cannot read this: the window clause is not closed: a comma or ] is missing
