-- EXISTS over streams that promise nothing
-- given: Wild1, Wild2

SELECT a.epoch, a.val FROM Wild1 a
WHERE EXISTS (SELECT 1 FROM Wild2 b WHERE a.epoch = b.epoch AND a.val > b.val)

--- oracle
SELECT a.epoch AS epoch, a.val AS val FROM Wild1 a
WHERE EXISTS (SELECT 1 FROM Wild2 b WHERE a.epoch = b.epoch AND a.val > b.val)
