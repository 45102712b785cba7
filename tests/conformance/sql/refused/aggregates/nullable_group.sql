-- A time that an outer join may leave empty
-- given: A, B

SELECT b.ts, count(*) FROM A a LEFT JOIN B b ON a.ts = b.ts GROUP BY b.ts

--- error at 1:70
this aggregate could never answer: no group is ever complete, because none of (b.ts) is a
progressing attribute (here: a.ts). Put a window after the source, [RANGE 1 minute, SLIDE 1
minute, WA ts], or group by a progressing attribute too
