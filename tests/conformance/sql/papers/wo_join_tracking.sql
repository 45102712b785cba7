-- The signals of four sensors by epoch (WO-Join §1): the epochs are equal, so rows can be forgotten
-- given: Sensor1, Sensor2, Sensor3, Sensor4

SELECT * FROM Sensor1 S1, Sensor2 S2,
Sensor3 S3, Sensor4 S4
WHERE S1.epoch = S2.epoch
AND S2.epoch = S3.epoch
AND S3.epoch = S4.epoch

--- oracle
SELECT S1.epoch AS S1_epoch, S1.x AS S1_x, S1.y AS S1_y, S1.z AS S1_z, S1.val AS S1_val,
       S2.epoch AS S2_epoch, S2.x AS S2_x, S2.y AS S2_y, S2.z AS S2_z, S2.val AS S2_val,
       S3.epoch AS S3_epoch, S3.x AS S3_x, S3.y AS S3_y, S3.z AS S3_z, S3.val AS S3_val,
       S4.epoch AS S4_epoch, S4.x AS S4_x, S4.y AS S4_y, S4.z AS S4_z, S4.val AS S4_val
FROM Sensor1 S1, Sensor2 S2, Sensor3 S3, Sensor4 S4
WHERE S1.epoch = S2.epoch AND S2.epoch = S3.epoch AND S3.epoch = S4.epoch
