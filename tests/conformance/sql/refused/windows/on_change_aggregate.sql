-- An aggregate that does not slide
-- given: M

SELECT srcIP,
       stddev(len) AS spread
FROM M [RANGE 1 minute, SLIDE ON CHANGE] GROUP BY srcIP

--- error at 2:8
a window that slides on change has no stddev; it has count(*), count(x), count(DISTINCT x), sum, avg, min
and max
