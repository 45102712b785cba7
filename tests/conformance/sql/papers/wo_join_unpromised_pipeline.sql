-- Query 2 of WO-Join over streams that promise nothing: each join has a clause of its own
-- given: Wild1, Wild2, Wild3, Wild4

SELECT S7.epoch, S7.weak, S8.strong
FROM (SELECT a.epoch, least(a.val, b.val) AS weak
      FROM Wild1 a JOIN Wild2 b ON a.epoch = b.epoch [STRATEGY msf]) AS S7,
     (SELECT c.epoch, greatest(c.val, d.val) AS strong
      FROM Wild3 c JOIN Wild4 d USING (epoch) [MEMORY '64 MB', ACCURACY 99.9 %]) AS S8
WHERE S7.epoch = S8.epoch [LATENCY 2 seconds, STRATEGY hybrid]

--- oracle
SELECT a.epoch AS epoch, least(a.val, b.val) AS weak, greatest(c.val, d.val) AS strong
FROM Wild1 a, Wild2 b, Wild3 c, Wild4 d
WHERE a.epoch = b.epoch AND c.epoch = d.epoch AND a.epoch = c.epoch
