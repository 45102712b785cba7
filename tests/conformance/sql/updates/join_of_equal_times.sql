-- Rows of equal times meet as they would in any join
-- given: Trades, Quotes

SELECT t.symbol, t.ts, t.price, q.price AS asked FROM Trades t JOIN Quotes q USING (symbol, ts)

--- oracle
SELECT t.symbol AS symbol, t.ts AS ts, t.price AS price, q.price AS asked
FROM Trades t JOIN Quotes q USING (symbol, ts)
