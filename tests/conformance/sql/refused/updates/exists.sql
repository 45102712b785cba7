-- So may whether one exists
-- given: Trades, Quotes

SELECT symbol FROM Trades t WHERE EXISTS (SELECT 1 FROM Quotes q WHERE q.symbol = t.symbol)

--- error at 1:57
a semi join of update streams would go by whether a row has a partner, ... join them inner
