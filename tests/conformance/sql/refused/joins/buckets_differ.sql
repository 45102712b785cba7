-- Buckets of different lengths
-- given: A, B

SELECT A.ts FROM A, B WHERE A.ts/10 = B.ts/20

--- error at 1:21
this join could never forget a row: nothing bounds how far apart in time matching rows may be.
Bound the times, A.ts >= B.ts - 60 AND A.ts <= B.ts + 60 for example, make them equal, or give
both sources a window: A [RANGE 1 minute], B [RANGE 1 minute]
