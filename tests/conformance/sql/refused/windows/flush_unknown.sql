-- A flush policy that is none
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, FLUSH SOON]

--- error at 1:47
FLUSH is SLOW EVERY 160 ROWS WITHIN 2 WINDOWS or LAZY WITHIN 2 WINDOWS; the bound may also be a length of time, WITHIN 1 MINUTE
