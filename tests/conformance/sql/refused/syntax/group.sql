-- A group is missing
-- given: M

SELECT count(*) FROM M GROUP BY

--- error at 1:24
GROUP BY lists nothing
