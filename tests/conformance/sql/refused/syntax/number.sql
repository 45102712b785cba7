-- A number that is none
-- given: M

SELECT 1.2.3 FROM M

--- error at 1:8
cannot use this expression: it is not part of the language
