-- The update key is not computed anew
-- given: Trades

SELECT ts, lower(symbol) AS symbol FROM Trades

--- error at 1:8
the update key (symbol) must stay with its rows, ... select symbol as it is; it may get another name
