-- A window on one source of a join only
-- given: A, B

SELECT * FROM A [RANGE 1 minute], B WHERE A.srcIP = B.srcIP

--- error at 1:35
only A has a window here; both sources of a join need one
