-- Query 1 of WO-Join (Fig. 4): one join of three streams on the progressing attribute
-- given: Sensor1, Sensor2, Sensor3

SELECT S1.epoch, S1.val, S2.val, S3.val
FROM Sensor1 S1, Sensor2 S2, Sensor3 S3
WHERE S1.epoch = S2.epoch AND S1.epoch = S3.epoch

--- oracle
SELECT S1.epoch AS epoch, S1.val AS S1_val, S2.val AS S2_val, S3.val AS S3_val
FROM Sensor1 S1, Sensor2 S2, Sensor3 S3
WHERE S1.epoch = S2.epoch AND S1.epoch = S3.epoch
