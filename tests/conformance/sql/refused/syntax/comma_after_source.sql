-- A comma with no source after it
-- given: M

SELECT ts FROM M,

--- error at 1:17
cannot read this: a source is missing after the comma
