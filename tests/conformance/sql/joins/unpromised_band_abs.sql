-- Times at most so far apart, of streams that promise nothing, with less memory than all rows take
-- given: Wild1, Wild2

SELECT a.epoch, a.val, b.epoch, b.val
FROM Wild1 a JOIN Wild2 b ON abs(a.epoch - b.epoch) <= 2 AND a.z = b.z [STRATEGY hybrid, MEMORY 1 MiB]

--- oracle
SELECT a.epoch AS a_epoch, a.val AS a_val, b.epoch AS b_epoch, b.val AS b_val
FROM Wild1 a JOIN Wild2 b ON abs(a.epoch - b.epoch) <= 2 AND a.z = b.z
