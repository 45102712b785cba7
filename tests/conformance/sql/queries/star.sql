-- SELECT * FROM one stream
-- given: Ticks

SELECT * FROM Ticks

--- oracle
SELECT symbol, price, volume, ts FROM Ticks
