-- A join without a window: connected through others, keys, residuals, filters and buckets
-- given: Wild1, Wild2, Wild3, n = -70

SELECT a.epoch, a.val, b.val, c.val
FROM Wild1 a JOIN Wild2 b ON a.epoch = b.epoch AND b.y = 2 * b.x
     JOIN Wild3 AS c ON (c.epoch = b.epoch) [ACCURACY 0.99, MEMORY 1 MiB]
WHERE a.z = b.z AND c.z = a.z AND a.val < b.val AND c.val > :n AND a.epoch/5 > 2 AND a.x < c.x

--- oracle
SELECT a.epoch AS epoch, a.val AS a_val, b.val AS b_val, c.val AS c_val
FROM Wild1 a, Wild2 b, Wild3 c
WHERE a.epoch = b.epoch AND b.epoch = c.epoch AND a.val < b.val AND c.val > -70
  AND floor(a.epoch / 5) > 2
