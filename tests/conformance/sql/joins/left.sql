-- A left join: rows without a partner come with nulls
-- given: A, B

SELECT a.ts, a.srcIP, b.ts, b.len FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts AND b.len > 75

--- oracle
SELECT a.ts AS a_ts, a.srcIP AS srcIP, b.ts AS b_ts, b.len AS len FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts - INTERVAL 3 SECOND AND a.ts AND b.len > 75
