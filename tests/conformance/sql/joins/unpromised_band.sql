-- Times near each other of streams that promise nothing
-- given: Sensor1, Wild2

SELECT a.epoch, a.val, b.epoch, b.val
FROM Sensor1 a, Wild2 b WHERE b.epoch BETWEEN a.epoch AND a.epoch + 5 AND b.val > a.val

--- oracle
SELECT a.epoch AS a_epoch, a.val AS a_val, b.epoch AS b_epoch, b.val AS b_val
FROM Sensor1 a, Wild2 b WHERE b.epoch BETWEEN a.epoch AND a.epoch + 5 AND b.val > a.val
