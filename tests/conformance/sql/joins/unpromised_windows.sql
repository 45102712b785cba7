-- A clause of joins beside windows
-- given: Sensor1, Wild2

SELECT a.epoch, a.val, b.epoch, b.val
FROM Sensor1 a [RANGE 5 seconds], Wild2 b [RANGE 3 seconds]
WHERE a.z = b.z [MEMORY '1 MB']

--- oracle
SELECT a.epoch AS a_epoch, a.val AS a_val, b.epoch AS b_epoch, b.val AS b_val
FROM Sensor1 a, Wild2 b WHERE a.z = b.z AND b.epoch > a.epoch - 3 AND b.epoch < a.epoch + 5
