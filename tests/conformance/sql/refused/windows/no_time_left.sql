-- A window over a query that lost its time
-- given: M

SELECT count(*) FROM (SELECT srcIP FROM M) [RANGE 1 minute]

--- error at 1:44
a window needs a progressing attribute, and this stream has none
