-- SLIDE twice
-- given: M

SELECT count(*) FROM M [SLIDE 1 minute, RANGE 2 minutes, SLIDE 1 minute]

--- error at 1:58
cannot read this: SLIDE is given twice
