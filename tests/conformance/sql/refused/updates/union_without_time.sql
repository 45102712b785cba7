-- A union that cannot tell which row is newer
-- given: Trades, Quotes

SELECT symbol, price FROM Trades UNION SELECT symbol, price FROM Quotes

--- error at 1:8
a union of update streams needs the time by which one row is newer than another; keep it where columns are selected
