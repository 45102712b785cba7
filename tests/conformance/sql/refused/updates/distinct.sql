-- Of a key and time there is one row anyhow
-- given: Trades

SELECT DISTINCT symbol, ts FROM Trades

--- error at 1:8
distinct over an update stream ... there is one row of each key and time
