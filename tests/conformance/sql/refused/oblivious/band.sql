-- Times near each other of streams that promise nothing
-- given: Sensor1, Wild2

SELECT * FROM Sensor1 a, Wild2 b WHERE b.epoch BETWEEN a.epoch AND a.epoch + 5

--- error at 1:26
a join of times near each other could never forget a row: nothing is promised about 'epoch' of stream 'Wild2'. ...
