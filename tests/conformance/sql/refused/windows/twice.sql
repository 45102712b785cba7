-- A window after the source and after the aggregate
-- given: M

SELECT count(*) [RANGE 1 minute] FROM M [RANGE 1 minute]

--- error at 1:17
the window is given twice
