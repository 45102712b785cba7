-- A union of update streams in FROM: of different keys, all rows
-- given: Trades, Futures

SELECT symbol, price, ts FROM Trades UNION Futures AS All_ WHERE price > 30

--- oracle
SELECT symbol, price, ts FROM (FROM Trades UNION ALL FROM Futures) WHERE price > 30
