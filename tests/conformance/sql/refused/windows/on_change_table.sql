-- A window that never closes needs no table
-- given: M

SELECT srcIP, count(*) FROM M [RANGE 1 minute, SLIDE ON CHANGE, TABLE 16 SLOTS] GROUP BY srcIP

--- error at 1:71
TABLE is about windows that close; one with SLIDE ON CHANGE never does
