-- A window that never closes keeps nothing until then
-- given: M

SELECT count(*) FROM M [KEEP ROWS, RANGE 1 minute, SLIDE ON CHANGE]

--- error at 1:30
KEEP is about windows that close; one with SLIDE ON CHANGE never does
