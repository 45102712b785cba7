-- Bounded on one side only
-- given: M1, M2

SELECT * FROM M1, M2 WHERE M1.srcIP = M2.srcIP AND M1.ts < M2.ts

--- error at 1:19
this join could never forget a row: how far apart in time matching rows may be is bounded on one
side only. Bound the times, M1.ts >= M2.ts - 60 AND M1.ts <= M2.ts + 60 for example, make them
equal, or give both sources a window: M1 [RANGE 1 minute], M2 [RANGE 1 minute]
