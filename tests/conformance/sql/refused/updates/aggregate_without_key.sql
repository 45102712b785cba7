-- Windows of an update stream are updates of its key
-- given: Trades

SELECT n, avg(price) FROM Trades [RANGE 1 minute] GROUP BY n

--- error at 1:60
windows of an update stream are grouped by its key at least, (symbol): GROUP BY n, symbol
