-- A clause of joins beside windows
-- given: Sensor1, Sensor2

SELECT * FROM Sensor1 a [RANGE 5 seconds], Sensor2 b [RANGE 5 seconds]
WHERE a.epoch = b.epoch [MEMORY '1 MB']

--- error at 2:25
this clause is about inner joins without a window: ...
