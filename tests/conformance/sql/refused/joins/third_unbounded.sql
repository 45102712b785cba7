-- The third source is not bound
-- given: A, B, C

SELECT * FROM A, B, C WHERE A.ts = B.ts AND A.srcIP = C.srcIP

--- error at 1:21
this join could never forget a row: nothing bounds how far apart in time matching rows may be.
Bound the times, A.ts >= C.ts - 60 AND A.ts <= C.ts + 60 for example, make them equal, or give
both sources a window: A [RANGE 1 minute], C [RANGE 1 minute]
