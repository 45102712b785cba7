-- A sign that is none
-- given: M

SELECT ts FROM M WHERE len ? 3

--- error at 1:24
cannot use this expression: it is not part of the language
