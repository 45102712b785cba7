-- Only keys expire
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, SLIDE 5 ROWS, EXPIRE 1 hour]

--- error at 1:24
EXPIRE forgets keys; name them by PARTITION BY
