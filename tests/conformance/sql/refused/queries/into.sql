-- SELECT INTO
-- given: M

SELECT ts INTO x FROM M

--- error at 1:16
SELECT INTO is not part of the language
