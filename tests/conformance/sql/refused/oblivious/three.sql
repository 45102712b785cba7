-- A clause of joins of three sources whose times are not all equal
-- given: Sensor1, Sensor2, Wild3

SELECT * FROM Sensor1 a, Sensor2 b, Wild3 c
WHERE a.epoch = b.epoch AND c.epoch BETWEEN b.epoch AND b.epoch + 5 [MEMORY '1 MB']

--- error at 2:69
this clause is about a join of two sources, or inner joins in which a progressing attribute of each source is equal to those of all others
