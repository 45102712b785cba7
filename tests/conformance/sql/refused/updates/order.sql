-- Rows that are given up cannot be in order across keys
-- given: Trades

SELECT * FROM Trades ORDER BY ts

--- error at 1:31
order_by over an update stream ... let what reads them sort across keys
