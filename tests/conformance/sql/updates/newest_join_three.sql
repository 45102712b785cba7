-- Three update streams are joined two at a time, by keys that are equal through each other
-- given: Trades, Quotes

SELECT a.symbol, a.price, b.price, c.price
FROM Trades a, Quotes b, Trades c
WHERE a.symbol = c.symbol AND c.symbol = b.symbol AND a.n = 3 AND b.n = 5 AND c.n = 4

--- oracle
SELECT a.symbol AS symbol, a.price AS a_price, b.price AS b_price, c.price AS c_price
FROM Trades a, Quotes b, Trades c
WHERE a.symbol = c.symbol AND c.symbol = b.symbol AND a.n = 3 AND b.n = 5 AND c.n = 4
