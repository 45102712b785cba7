-- An outer join of streams that promise nothing
-- given: Wild1, Wild2

SELECT a.epoch, a.val, b.val
FROM Wild1 a LEFT JOIN Wild2 b ON a.epoch = b.epoch AND b.val > a.val + 10 [STRATEGY msf]

--- oracle
SELECT a.epoch AS epoch, a.val AS a_val, b.val AS b_val
FROM Wild1 a LEFT JOIN Wild2 b ON a.epoch = b.epoch AND b.val > a.val + 10
