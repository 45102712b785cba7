-- Items sold in both stores in the last ten minutes (Ordered §1): pairs less than ten minutes apart
-- given: SensorReadings1, SensorReadings2

SELECT COUNT(DISTINCT S.ItemType) FROM SensorReadings1 S, SensorReadings2 T WHERE S.ItemType = T.ItemType WINDOW 10 minutes

--- oracle
SELECT time_bucket(INTERVAL 10 MINUTE, S.ts) AS window_start,
       time_bucket(INTERVAL 10 MINUTE, S.ts) + INTERVAL 10 MINUTE AS window_end,
       count(DISTINCT S.ItemType) AS count
FROM SensorReadings1 S, SensorReadings2 T
WHERE S.ItemType = T.ItemType
  AND T.ts > S.ts - INTERVAL 10 MINUTE AND T.ts < S.ts + INTERVAL 10 MINUTE
GROUP BY ALL
