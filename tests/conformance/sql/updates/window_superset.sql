-- Windows may be grouped by more than the key
-- given: Trades

SELECT symbol, n % 2 AS odd, avg(price) AS mean
FROM Trades [RANGE 1 minute]
GROUP BY symbol, n % 2
HAVING count(*) > 1

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       symbol, n % 2 AS odd, avg(price) AS mean
FROM Trades GROUP BY ALL HAVING count(*) > 1
