-- A window after the source and at the end
-- given: M

SELECT count(*) FROM M [RANGE 1 minute] WINDOW 2 minutes

--- error at 1:41
the window is given twice
