-- All rows of both of two streams that promise nothing, near each other in time
-- given: Wild1, Wild2

SELECT a.epoch, a.val, b.epoch, b.val
FROM Wild1 a FULL JOIN Wild2 b ON abs(a.epoch - b.epoch) <= 1 AND b.val > a.val + 20

--- oracle
SELECT a.epoch AS a_epoch, a.val AS a_val, b.epoch AS b_epoch, b.val AS b_val
FROM Wild1 a FULL JOIN Wild2 b ON abs(a.epoch - b.epoch) <= 1 AND b.val > a.val + 20
