-- Whether there is a partner may change at any moment
-- given: Trades, Quotes

SELECT * FROM Trades t LEFT JOIN Quotes q ON t.symbol = q.symbol

--- error at 1:34
a left join of update streams would go by whether a row has a partner, ... join them inner
