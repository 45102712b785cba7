-- Rows on disk are read before they are due: the results are the same
-- given: Wild1, Wild2, Wild3

SELECT a.epoch, a.val, b.val AS v2, c.val AS v3
FROM Wild1 a, Wild2 b, Wild3 c
WHERE a.epoch = b.epoch AND b.epoch = c.epoch [STRATEGY hybrid, READ_AHEAD 3 ROWS]

--- oracle
SELECT a.epoch AS epoch, a.val AS val, b.val AS v2, c.val AS v3
FROM Wild1 a, Wild2 b, Wild3 c
WHERE a.epoch = b.epoch AND b.epoch = c.epoch
