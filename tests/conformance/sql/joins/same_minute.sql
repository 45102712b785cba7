-- Equal times once cut to the minute
-- given: Rooms, Ticks

SELECT r.room, t.symbol, r.ts, t.ts AS tick FROM Rooms r, Ticks t
WHERE date_trunc('minute', r.ts) = date_trunc('minute', t.ts) AND t.symbol = 'Q'

--- oracle
SELECT r.room AS room, t.symbol AS symbol, r.ts AS ts, t.ts AS tick FROM Rooms r, Ticks t
WHERE date_trunc('minute', r.ts) = date_trunc('minute', t.ts) AND t.symbol = 'Q'
