-- Rows are counted, not time
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, FLUSH SLOW EVERY 2 minutes]

--- error at 1:58
EVERY takes a whole number above zero, for example 2 ROWS
