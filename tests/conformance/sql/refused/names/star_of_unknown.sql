-- The columns of a source that is not there
-- given: M

SELECT x.* FROM M

--- error at 1:8
unknown source 'x'. Known: M.
