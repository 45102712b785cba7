-- Keys that are computed
-- given: Ticks, Rooms

SELECT t.symbol, r.room, t.ts, r.ts FROM Ticks t, Rooms r
WHERE length(t.symbol) = length(r.room) - 3 AND r.ts BETWEEN t.ts - 30 AND t.ts + 30

--- oracle
SELECT t.symbol AS symbol, r.room AS room, t.ts AS t_ts, r.ts AS r_ts FROM Ticks t, Rooms r
WHERE length(t.symbol) = length(r.room) - 3
  AND r.ts BETWEEN t.ts - INTERVAL 30 SECOND AND t.ts + INTERVAL 30 SECOND
