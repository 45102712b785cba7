-- A band of months
-- given: A, B

SELECT A.ts FROM A, B WHERE B.ts BETWEEN A.ts - INTERVAL '1' MONTH AND A.ts

--- error at 1:21
this join could never forget a row: how far apart in time matching rows may be is bounded on one
side only. Bound the times, A.ts >= B.ts - 60 AND A.ts <= B.ts + 60 for example, make them equal,
or give both sources a window: A [RANGE 1 minute], B [RANGE 1 minute]
