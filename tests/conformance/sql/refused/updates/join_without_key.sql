-- A join of update streams on something else than their keys
-- given: Trades, Quotes

SELECT * FROM Trades t JOIN Quotes q ON t.n = q.n

--- error at 1:29
a join of update streams has both update keys among the columns that must be equal: (t.symbol) of the left and (q.symbol) of the right
