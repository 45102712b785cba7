-- A comma with nothing after it
-- given: M

SELECT ts, FROM M

--- error at 1:10
cannot read this: something is missing after the comma
