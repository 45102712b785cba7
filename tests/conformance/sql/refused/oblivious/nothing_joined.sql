-- A clause of joins where nothing is joined
-- given: Wild1

SELECT * FROM Wild1 [MEMORY '1 MB']

--- error at 1:21
this clause is of joins, and nothing is joined
