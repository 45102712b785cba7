-- FOR UPDATE
-- given: M

SELECT ts FROM M FOR UPDATE

--- error at 1:22
FOR UPDATE is not part of the language
