-- FILTER on aggregates that go by time
-- given: Ticks

SELECT symbol, last(price) FILTER (WHERE volume = 100) AS small_lot,
       first(price) FILTER (WHERE volume IS NULL) AS none
FROM Ticks [RANGE 3 minutes] GROUP BY symbol

--- oracle
SELECT time_bucket(INTERVAL 3 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 3 MINUTE, ts) + INTERVAL 3 MINUTE AS window_end, symbol AS symbol,
       last(price ORDER BY ts, price) FILTER (WHERE volume = 100) AS small_lot,
       first(price ORDER BY ts, price) FILTER (WHERE volume IS NULL) AS none
FROM Ticks GROUP BY ALL
