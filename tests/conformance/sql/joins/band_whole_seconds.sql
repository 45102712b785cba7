-- A band on whole seconds; half a second more allows nothing more
-- given: Sensor1, Sensor2

SELECT a.epoch, b.epoch, a.val, b.val FROM Sensor1 a, Sensor2 b
WHERE a.epoch >= b.epoch - 1.5 AND a.epoch < b.epoch + 1

--- oracle
SELECT a.epoch AS a_epoch, b.epoch AS b_epoch, a.val AS a_val, b.val AS b_val
FROM Sensor1 a, Sensor2 b WHERE a.epoch BETWEEN b.epoch - 1 AND b.epoch
