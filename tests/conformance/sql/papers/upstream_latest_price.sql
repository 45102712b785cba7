-- The latest price per symbol (UpStream §2); where work takes no time, every price is one
-- given: Trades

SELECT symbol, price FROM Trades

--- oracle
SELECT symbol, price FROM Trades
