-- source.* over one source
-- given: Ticks

SELECT t.*, t.price FROM Ticks t WHERE t.volume IS NOT NULL

--- oracle
SELECT symbol, price, volume, ts, price AS price_2 FROM Ticks WHERE volume IS NOT NULL
