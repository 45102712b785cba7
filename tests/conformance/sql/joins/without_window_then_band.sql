-- What a join without a window gives is promised, so that a window can follow it
-- given: Wild1, Wild2, Sensor3

SELECT J.epoch, J.val, s.epoch, s.val
FROM (SELECT a.epoch, a.val FROM Wild1 a, Wild2 b WHERE a.epoch = b.epoch) AS J, Sensor3 s
WHERE s.epoch BETWEEN J.epoch - 1 AND J.epoch + 2 AND s.val > J.val

--- oracle
SELECT J.epoch AS J_epoch, J.val AS J_val, s.epoch AS s_epoch, s.val AS s_val
FROM (SELECT a.epoch, a.val FROM Wild1 a, Wild2 b WHERE a.epoch = b.epoch) AS J, Sensor3 s
WHERE s.epoch BETWEEN J.epoch - 1 AND J.epoch + 2 AND s.val > J.val
