-- ON without a condition bounds nothing
-- given: M

SELECT * FROM M a JOIN M b ON

--- error at 1:24
this join could never forget a row: nothing bounds how far apart in time matching rows may be.
Bound the times, a.ts >= b.ts - 60 AND a.ts <= b.ts + 60 for example, make them equal, or give
both sources a window: a [RANGE 1 minute], b [RANGE 1 minute]
