-- A comma too many
-- given: M

SELECT ts,, len FROM M

--- error at 1:11
cannot read this: something is missing before the comma
