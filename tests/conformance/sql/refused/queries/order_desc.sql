-- ORDER BY ... DESC
-- given: M

SELECT ts FROM M ORDER BY ts DESC

--- error at 1:27
a stream can be put in ascending order only: its last row never comes
