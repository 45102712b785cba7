-- A month is not as long every time
-- given: M

SELECT count(*) FROM M [RANGE 1 month]

--- error at 1:31
RANGE: 'month' is no unit of time; use ms, seconds, minutes, hours, days or ROWS
