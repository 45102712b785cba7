-- * beside computed columns; a name that is taken gets a number
-- given: Ticks

SELECT *, price * 2 AS twice, price FROM Ticks

--- oracle
SELECT symbol, price, volume, ts, price * 2 AS twice, price AS price_2 FROM Ticks
