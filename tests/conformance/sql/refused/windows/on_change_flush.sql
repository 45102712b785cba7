-- A window that never closes flushes nothing
-- given: M

SELECT srcIP, count(*) FROM M [RANGE 1 minute, SLIDE ON CHANGE, FLUSH LAZY] GROUP BY srcIP

--- error at 1:71
FLUSH is about windows that close; one with SLIDE ON CHANGE never does
