-- Every exact aggregate, with nulls in the column
-- given: Ticks

SELECT symbol, count(*) AS n, count(volume) AS some, sum(volume) AS total, avg(volume) AS mean,
       min(price) AS low, max(price) AS high, stddev(price) AS spread,
       first(price) AS first, last(price) AS last, count(DISTINCT volume) AS sizes
FROM Ticks [RANGE 2 minutes] GROUP BY symbol

--- oracle
SELECT time_bucket(INTERVAL 2 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 2 MINUTE, ts) + INTERVAL 2 MINUTE AS window_end,
       symbol AS symbol, count(*) AS n, count(volume) AS some, CAST(sum(volume) AS BIGINT) AS total,
       avg(volume) AS mean, min(price) AS low, max(price) AS high, stddev(price) AS spread,
       first(price ORDER BY ts, price) AS first, last(price ORDER BY ts, price) AS last,
       count(DISTINCT volume) AS sizes
FROM Ticks GROUP BY ALL
