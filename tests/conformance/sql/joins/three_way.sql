-- Three sources, bounded pair by pair, with a condition over all
-- given: A, B, C

SELECT a.ts, b.ts, c.ts FROM A a, B b, C c
WHERE a.srcIP = b.srcIP AND b.srcIP = c.srcIP AND abs(a.ts - b.ts) <= 5
  AND c.ts >= b.ts AND c.ts <= b.ts + 10 AND a.len + b.len > c.len

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts FROM A a, B b, C c
WHERE a.srcIP = b.srcIP AND b.srcIP = c.srcIP
  AND a.ts BETWEEN b.ts - INTERVAL 5 SECOND AND b.ts + INTERVAL 5 SECOND
  AND c.ts >= b.ts AND c.ts <= b.ts + INTERVAL 10 SECOND AND a.len + b.len > c.len
