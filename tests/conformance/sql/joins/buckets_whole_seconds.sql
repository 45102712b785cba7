-- Buckets of whole seconds
-- given: Sensor1, Sensor2

SELECT a.epoch, b.epoch FROM Sensor1 a, Sensor2 b WHERE b.epoch/7 = a.epoch/7

--- oracle
SELECT a.epoch AS a_epoch, b.epoch AS b_epoch FROM Sensor1 a, Sensor2 b
WHERE floor(a.epoch / 7) = floor(b.epoch / 7)
