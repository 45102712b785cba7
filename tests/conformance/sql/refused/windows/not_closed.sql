-- A clause that is not closed
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, SLIDE 1 minute

--- error at 1:49
cannot read this: the window clause is not closed: a comma or ] is missing
