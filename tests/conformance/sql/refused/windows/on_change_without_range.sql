-- A window without a length
-- given: M

SELECT count(*) FROM M [SLIDE ON CHANGE]

--- error at 1:24
a window clause needs RANGE, for example [RANGE 1 minute, WA ts]
