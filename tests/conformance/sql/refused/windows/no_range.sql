-- A clause without RANGE
-- given: M

SELECT count(*) FROM M [SLIDE 1 minute, WA ts]

--- error at 1:24
a window clause needs RANGE, for example [RANGE 1 minute, WA ts]
