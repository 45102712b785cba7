-- NOT EXISTS over streams that promise nothing, with times near each other
-- given: Wild1, Wild2

SELECT a.epoch, a.val FROM Wild1 a
WHERE NOT EXISTS (SELECT 1 FROM Wild2 b
                  WHERE b.epoch BETWEEN a.epoch - 1 AND a.epoch + 1 AND a.val > b.val + 20)

--- oracle
SELECT a.epoch AS epoch, a.val AS val FROM Wild1 a
WHERE NOT EXISTS (SELECT 1 FROM Wild2 b
                  WHERE b.epoch BETWEEN a.epoch - 1 AND a.epoch + 1 AND a.val > b.val + 20)
