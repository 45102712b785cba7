-- What is newest needs no aggregate
-- given: Trades

SELECT symbol, last(price) FROM Trades GROUP BY symbol

--- error at 1:49
an aggregate without a window over an update stream would depend on which rows are given up under load; put one after the source, [RANGE 1 minute, SLIDE 1 minute, WA ts], or select the newest row of each key without an aggregate
