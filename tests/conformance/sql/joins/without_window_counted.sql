-- Groups over a join without a window; streams that do promise may be measured as well
-- given: Sensor1, Sensor2

SELECT S1.epoch, count(*) AS n FROM Sensor1 S1, Sensor2 S2
WHERE S1.epoch = S2.epoch GROUP BY S1.epoch [STRATEGY msf]

--- oracle
SELECT S1.epoch AS epoch, count(*) AS n FROM Sensor1 S1, Sensor2 S2
WHERE S1.epoch = S2.epoch GROUP BY S1.epoch
