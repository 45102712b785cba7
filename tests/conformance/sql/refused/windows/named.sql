-- A named window
-- given: M

SELECT count(*) FROM M WINDOW w AS (PARTITION BY srcIP)

--- error at 1:31
named windows look at other rows; a window of a stream is written [RANGE 1 minute, SLIDE 1 minute,
WA ts] after the source
