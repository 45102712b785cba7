-- The results of an outer join of streams that promise nothing in windows
-- given: Wild1, Wild2

SELECT window_start, count(*) [RANGE 20, WA a.epoch] AS n, count(b.val) AS met
FROM Wild1 a LEFT JOIN Wild2 b ON a.epoch = b.epoch AND b.val > a.val + 10

--- oracle
SELECT a.epoch // 20 * 20 AS window_start, count(*) AS n, count(b.val) AS met
FROM Wild1 a LEFT JOIN Wild2 b ON a.epoch = b.epoch AND b.val > a.val + 10
GROUP BY window_start
