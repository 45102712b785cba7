-- DISTINCT forgets by time
-- given: M

SELECT DISTINCT ts, srcIP FROM M

--- oracle
SELECT DISTINCT ts AS ts, srcIP AS srcIP FROM M
