-- Whether there is a partner may change at any moment
-- given: Trades, Quotes

SELECT * FROM Trades t LEFT JOIN Quotes q ON t.symbol = q.symbol

--- error at 1:34
a left join of update streams is refused: the next update may change whether a row has a partner, ... use an inner join
