-- Items sold in both stores in the last ten minutes (Ordered §1): a count online, of pairs at most ten minutes apart
-- given: SensorReadings1, SensorReadings2

SELECT COUNT(DISTINCT S.ItemType) FROM SensorReadings1 S, SensorReadings2 T WHERE S.ItemType = T.ItemType WINDOW 10 minutes

--- oracle
WITH P AS (
    SELECT S.ItemType, greatest(S.ts, T.ts) AS moment FROM SensorReadings1 S, SensorReadings2 T
    WHERE S.ItemType = T.ItemType AND abs(epoch_us(S.ts) - epoch_us(T.ts)) <= 600000000),
answers AS (
    SELECT t, count(DISTINCT p.ItemType) AS count
    FROM (SELECT moment AS t FROM P UNION SELECT moment + INTERVAL 10 MINUTE FROM P)
    LEFT JOIN P p ON p.moment <= t AND p.moment > t - INTERVAL 10 MINUTE GROUP BY t)
SELECT t - INTERVAL 10 MINUTE AS window_start, t AS window_end, count FROM answers
QUALIFY count <> lag(count, 1, 0) OVER (ORDER BY t)
