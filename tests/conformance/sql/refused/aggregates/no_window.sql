-- An aggregate over all time could never answer
-- given: M

SELECT count(*) FROM M

--- error at 1:8
this aggregate could never answer: it has no window. Put one after the source, [RANGE 1 minute,
SLIDE 1 minute, WA ts], or group by a progressing attribute
