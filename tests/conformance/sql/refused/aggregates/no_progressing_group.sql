-- No group is ever complete
-- given: M

SELECT srcIP, count(*)
FROM M
GROUP BY srcIP

--- error at 3:10
this aggregate could never answer: no group is ever complete, because none of (srcIP) is a
progressing attribute (here: ts). Put a window after the source, [RANGE 1 minute, SLIDE 1 minute,
WA ts], or group by a progressing attribute too
