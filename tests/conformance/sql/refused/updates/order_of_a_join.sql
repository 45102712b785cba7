-- Nor can results of joins
-- given: Trades, Quotes

SELECT t.symbol FROM Trades t, Quotes q WHERE t.symbol = q.symbol AND t.ts = q.ts
ORDER BY greatest(t.ts, q.ts)

--- error at 2:10
the order of a join over an update stream ... the results of each key leave in order
