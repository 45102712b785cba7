-- source.* beside a column of the other
-- given: Rooms, Ticks

SELECT t.*, r.room FROM Ticks t JOIN Rooms r ON r.ts BETWEEN t.ts - 2 AND t.ts + 2

--- oracle
SELECT t.symbol AS symbol, t.price AS price, t.volume AS volume, t.ts AS ts, r.room AS room
FROM Ticks t JOIN Rooms r ON r.ts BETWEEN t.ts - INTERVAL 2 SECOND AND t.ts + INTERVAL 2 SECOND
