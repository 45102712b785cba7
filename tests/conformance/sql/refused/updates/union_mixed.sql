-- A union of an update stream and another
-- given: Trades, Ticks

SELECT symbol, price, ts FROM Trades UNION ALL SELECT symbol, price, ts FROM Ticks

--- error at 1:8
union: some of these are update streams and some are not; ...
