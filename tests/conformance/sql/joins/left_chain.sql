-- Two left joins one after the other
-- given: A, B, C

SELECT a.ts, b.len, c.len FROM A a
LEFT JOIN B b ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts AND a.ts + 3
LEFT JOIN C c ON a.srcIP = c.srcIP AND c.ts BETWEEN a.ts AND a.ts + 3

--- oracle
SELECT a.ts AS ts, b.len AS b_len, c.len AS c_len FROM A a
LEFT JOIN B b ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECOND
LEFT JOIN C c ON a.srcIP = c.srcIP AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECOND
