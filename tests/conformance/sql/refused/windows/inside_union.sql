-- The clause goes after the union
-- given: M1, M2

SELECT count(*) FROM M1 [RANGE 1 minute] UNION M2

--- error at 1:25
the window clause goes after the whole union
