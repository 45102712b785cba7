-- The latest price per symbol (UpStream §2), as of the end of each minute
-- given: Ticks

SELECT symbol, last(price) AS price
FROM Ticks [RANGE 1 minute]
GROUP BY symbol

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       symbol AS symbol, last(price ORDER BY ts, price) AS price
FROM Ticks GROUP BY ALL
