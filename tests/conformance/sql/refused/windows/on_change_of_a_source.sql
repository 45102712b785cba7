-- SLIDE ON CHANGE on a source of a join
-- given: A, B

SELECT * FROM A [RANGE 1 minute, SLIDE ON CHANGE], B [RANGE 1 minute] WHERE A.srcIP = B.srcIP

--- error at 1:17
SLIDE says how often an aggregate answers; a join's source has RANGE only. ...
