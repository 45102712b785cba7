-- A parameter without a name
-- given: M

SELECT ts FROM M WHERE len = ?

--- error at 1:30
a parameter has a name, as in :n
