-- A trailing WINDOW without a unit
-- given: M

SELECT count(*) FROM M WINDOW 5 bananas

--- error at 1:31
RANGE: 'bananas' is no unit of time; use ms, seconds, minutes, hours, days or ROWS
