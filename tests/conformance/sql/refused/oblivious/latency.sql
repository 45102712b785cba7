-- A latency in rows
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [LATENCY 5 ROWS] WHERE a.epoch = b.epoch

--- error at 1:41
LATENCY takes a length of time such as 2 seconds
