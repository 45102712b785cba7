-- A window over a union of update streams
-- given: Trades, Futures

SELECT symbol, count(*) AS n, max(price) AS most
FROM Trades UNION Futures [RANGE 1 minute, SLIDE 20 seconds, WA ts]
GROUP BY symbol

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, symbol, count(*) AS n,
       max(price) AS most
FROM (SELECT unnest(starts(ts, 60, 20)) AS window_start, *
      FROM (FROM Trades UNION ALL FROM Futures))
GROUP BY window_start, symbol
