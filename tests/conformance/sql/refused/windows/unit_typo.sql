-- A unit that is none
-- given: M

SELECT count(*) FROM M [RANGE 1 minut]

--- error at 1:31
RANGE: 'minut' is no unit of time; use ms, seconds, minutes, hours, days or ROWS
