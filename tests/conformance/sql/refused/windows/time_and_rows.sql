-- A window that slides by rows never closes
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, SLIDE 10 ROWS, KEEP ROWS]

--- error at 1:61
KEEP is about windows that close; those that slide by rows never do
