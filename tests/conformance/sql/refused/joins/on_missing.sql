-- JOIN without ON
-- given: A, B

SELECT A.ts FROM A JOIN B

--- error at 1:25
this join could never forget a row: nothing bounds how far apart in time matching rows may be.
Bound the times, A.ts >= B.ts - 60 AND A.ts <= B.ts + 60 for example, make them equal, or give
both sources a window: A [RANGE 1 minute], B [RANGE 1 minute]
