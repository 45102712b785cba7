-- ON something else
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, SLIDE ON ROWS]

--- error at 1:47
cannot read this: SLIDE is a length of time, for example 1 minute, or ON CHANGE
