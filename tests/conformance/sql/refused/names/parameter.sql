-- A parameter that was not given
-- given: M, limit = 3

SELECT * FROM M WHERE len > :limmit

--- error at 1:29
unknown parameter ':limmit'. Did you mean ':limit'? Known: :limit.
