-- A form that is none
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, KEEP nothing]

--- error at 1:46
keep= is 'panes', 'windows' or 'rows', or None to choose, not 'nothing'
