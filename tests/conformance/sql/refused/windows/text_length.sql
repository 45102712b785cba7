-- A parameter that is no length
-- given: M, n = 'soon'

SELECT count(*) FROM M [RANGE :n]

--- error at 1:31
RANGE 'soon' is not a length of time; write a number and a unit, for example '500 ms', '5
seconds', '1 minute', '2 hours', '1 day'
