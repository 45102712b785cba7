-- A join on values that do not progress could never forget a row
-- given: Sensor1, Sensor2

SELECT * FROM Sensor1 S1, Sensor2 S2 WHERE S1.val = S2.val

--- error at 1:27
this join could never forget a row: nothing bounds how far apart in time matching rows may be. Bound the times, S1.epoch >= S2.epoch - 60 AND S1.epoch <= S2.epoch + 60 for example, make them equal, or give both sources a window: S1 [RANGE 1 minute], S2 [RANGE 1 minute]
