-- The newest rows of two update streams by key; of one row each, that is every pair
-- given: Trades, Quotes

SELECT t.symbol, t.price, q.price AS asked, q.ts
FROM Trades t JOIN Quotes q ON t.symbol = q.symbol
WHERE t.n = 3 AND q.n = 5 AND t.price <> q.price

--- oracle
SELECT t.symbol AS symbol, t.price AS price, q.price AS asked, q.ts AS ts
FROM Trades t JOIN Quotes q ON t.symbol = q.symbol
WHERE t.n = 3 AND q.n = 5 AND t.price <> q.price
