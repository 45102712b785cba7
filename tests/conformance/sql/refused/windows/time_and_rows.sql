-- Time and rows mixed
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, SLIDE 10 ROWS]

--- error at 1:24
RANGE is a length of time, so SLIDE is one too
