-- Sessions have no newest
-- given: Trades

SELECT symbol, count(*) FROM Trades [SESSION 5 seconds] GROUP BY symbol

--- error at 1:37
windows of an update stream are of a length of time ...
