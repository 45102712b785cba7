-- A parameter of a window that was not given
-- given: M

SELECT count(*) FROM M [RANGE :n minutes]

--- error at 1:31
unknown parameter ':n'. Known: (none).
