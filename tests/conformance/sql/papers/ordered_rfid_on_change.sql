-- The RFID query as it is drawn: the pairs of a join, then an online count of what they are about
-- given: SensorReadings1, SensorReadings2

SELECT COUNT(DISTINCT ItemType) AS kinds
FROM (SELECT S.ItemType, GREATEST(S.ts, T.ts) AS at
      FROM SensorReadings1 S, SensorReadings2 T
      WHERE S.ItemType = T.ItemType AND abs(S.ts - T.ts) < 600) [RANGE 10 minutes, SLIDE ON CHANGE, WA at]

--- oracle
WITH P AS (
    SELECT S.ItemType, greatest(S.ts, T.ts) AS moment FROM SensorReadings1 S, SensorReadings2 T
    WHERE S.ItemType = T.ItemType AND abs(epoch_us(S.ts) - epoch_us(T.ts)) < 600000000),
answers AS (
    SELECT t, count(DISTINCT p.ItemType) AS kinds
    FROM (SELECT moment AS t FROM P UNION SELECT moment + INTERVAL 10 MINUTE FROM P)
    LEFT JOIN P p ON p.moment <= t AND p.moment > t - INTERVAL 10 MINUTE GROUP BY t)
SELECT t - INTERVAL 10 MINUTE AS window_start, t AS window_end, kinds FROM answers
QUALIFY kinds <> lag(kinds, 1, 0) OVER (ORDER BY t)
