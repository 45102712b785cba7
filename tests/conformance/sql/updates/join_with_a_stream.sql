-- A join with a stream that is no update stream is an ordinary join
-- given: Trades, Ticks

SELECT Trades.symbol, Trades.n, Ticks.price, Ticks.ts FROM Trades, Ticks
WHERE Trades.symbol = Ticks.symbol AND abs(Trades.ts - Ticks.ts) < 3

--- oracle
SELECT Trades.symbol AS symbol, Trades.n AS n, Ticks.price AS price, Ticks.ts AS ts
FROM Trades, Ticks
WHERE Trades.symbol = Ticks.symbol AND abs(epoch_us(Trades.ts) - epoch_us(Ticks.ts)) < 3000000
