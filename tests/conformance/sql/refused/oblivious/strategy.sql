-- A strategy nobody knows
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b
WHERE a.epoch = b.epoch [STRATEGY disk]

--- error at 2:35
STRATEGY is one of AUTO, PLAIN, MSF, DBF, HYBRID, not DISK
