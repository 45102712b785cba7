-- A union of queries over update streams is one, and drops nothing but what is older
-- given: Trades, Futures

SELECT symbol, price, ts FROM Trades WHERE price > 30
UNION
SELECT symbol AS name, price + 1, ts FROM Futures

--- oracle
SELECT symbol, price, ts FROM Trades WHERE price > 30 UNION ALL SELECT symbol, price + 1, ts FROM Futures
