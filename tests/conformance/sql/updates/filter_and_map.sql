-- Filters and computed columns leave the key as it is, or give it another name
-- given: Trades

SELECT symbol AS name, price * 100 AS cents, ts - 5 AS early FROM Trades WHERE price > 40 AND n % 2 = 0

--- oracle
SELECT symbol AS name, price * 100 AS cents, ts - INTERVAL 5 SECOND AS early
FROM Trades WHERE price > 40 AND n % 2 = 0
