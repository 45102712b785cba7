-- So may whether one exists
-- given: Trades, Quotes

SELECT symbol FROM Trades t WHERE EXISTS (SELECT 1 FROM Quotes q WHERE q.symbol = t.symbol)

--- error at 1:57
a semi join of update streams is refused: the next update may change whether a row has a partner, ... use an inner join
