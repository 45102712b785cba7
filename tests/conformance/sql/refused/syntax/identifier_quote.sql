-- A name that does not end
-- given: M

SELECT "ts FROM M

--- error at 1:8
cannot read this: " is not closed
