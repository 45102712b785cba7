-- A chain of outer joins of streams that promise nothing
-- given: Wild1, Wild2, Wild3

SELECT a.val, b.val, c.epoch, c.val
FROM Wild1 a JOIN Wild2 b ON a.epoch = b.epoch RIGHT JOIN Wild3 c ON a.epoch = c.epoch AND c.val > b.val

--- oracle
SELECT a.val AS a_val, b.val AS b_val, c.epoch AS epoch, c.val AS c_val
FROM Wild1 a JOIN Wild2 b ON a.epoch = b.epoch RIGHT JOIN Wild3 c ON a.epoch = c.epoch AND c.val > b.val
