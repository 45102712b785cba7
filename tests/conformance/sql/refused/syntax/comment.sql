-- A comment that does not end
-- given: M

SELECT ts /* all FROM M

--- error at 1:11
cannot read this: the comment is not closed
