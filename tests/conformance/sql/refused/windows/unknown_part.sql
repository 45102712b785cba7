-- A part that is none
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, STEP 1 minute]

--- error at 1:41
cannot read this: a window clause has the parts PARTITION BY, RANGE, SLIDE, EXPIRE,
WA, SESSION, FLUSH, KEEP and TABLE.
