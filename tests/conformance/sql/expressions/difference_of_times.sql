-- The time between two columns
-- given: Mixed

SELECT id, ts FROM Mixed WHERE ts - seen > INTERVAL '1' DAY OR abs(seen - ts) < 20 OR ts - seen BETWEEN 30 AND 40

--- oracle
SELECT id AS id, ts AS ts FROM Mixed
WHERE ts - seen > INTERVAL '1' DAY
   OR abs(epoch_us(seen) - epoch_us(ts)) < 20000000
   OR epoch_us(ts) - epoch_us(seen) BETWEEN 30000000 AND 40000000
