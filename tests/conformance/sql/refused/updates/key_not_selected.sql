-- The update key stays with its rows
-- given: Trades

SELECT price, ts FROM Trades

--- error at 1:8
the update key (symbol) must stay with its rows, because a row replaces the one with the same key; select symbol as it is; it may get another name
