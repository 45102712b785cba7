-- Sessions have no newest
-- given: Trades

SELECT symbol, count(*) FROM Trades [SESSION 5 seconds] GROUP BY symbol

--- error at 1:37
a window of an update stream has a length of time ...
