-- WHERE twice
-- given: M

SELECT ts FROM M WHERE len > 1 WHERE len > 2

--- error at 1:32
cannot read this: found multiple 'WHERE' clauses
