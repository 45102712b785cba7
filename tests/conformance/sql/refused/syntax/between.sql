-- BETWEEN without AND
-- given: M

SELECT ts FROM M WHERE len BETWEEN 3 OR 4

--- error at 1:38
cannot read this: something is missing here
