-- Query 2 of WO-Join (Fig. 4): joins of joins, J3 over J1 and J2
-- given: Sensor1, Sensor2, Sensor3, Sensor4

SELECT S7.epoch, S7.weak, S8.strong
FROM (SELECT a.epoch, least(a.val, b.val) AS weak
      FROM Sensor1 a JOIN Sensor2 b ON a.epoch = b.epoch) AS S7,
     (SELECT c.epoch, greatest(c.val, d.val) AS strong
      FROM Sensor3 c JOIN Sensor4 d ON c.epoch = d.epoch) AS S8
WHERE S7.epoch = S8.epoch

--- oracle
SELECT a.epoch AS epoch, least(a.val, b.val) AS weak, greatest(c.val, d.val) AS strong
FROM Sensor1 a, Sensor2 b, Sensor3 c, Sensor4 d
WHERE a.epoch = b.epoch AND c.epoch = d.epoch AND a.epoch = c.epoch
