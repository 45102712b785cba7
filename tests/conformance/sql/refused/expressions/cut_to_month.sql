-- A time cut to months
-- given: M

SELECT date_trunc('month', ts) AS m, count(*) FROM M GROUP BY 1

--- error at 1:8
a time can be cut to microsecond, millisecond, second, minute, hour, day, not to 'month'
