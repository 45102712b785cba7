-- The update key stays with its rows
-- given: Trades

SELECT price, ts FROM Trades

--- error at 1:8
the update key (symbol) stays with its rows, or nobody knows which one a row replaces; select symbol as it is; it may get another name
