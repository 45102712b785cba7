-- collect in sliding windows
-- given: Ticks

SELECT symbol, collect(price) AS prices FROM Ticks [RANGE 1 minute, SLIDE 20 seconds] GROUP BY symbol

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, symbol AS symbol,
       list(price ORDER BY ts, price) AS prices
FROM (SELECT unnest(starts(ts, 60, 20)) AS window_start, * FROM Ticks)
GROUP BY window_start, symbol
