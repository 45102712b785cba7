-- Two clauses after one source
-- given: M

SELECT count(*) FROM M [RANGE 1 minute] [RANGE 1 minute]

--- error at 1:41
a source has one window clause
