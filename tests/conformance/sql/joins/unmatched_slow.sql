-- Rows without a partner that leave slowly are the same
-- given: A, B

SELECT a.ts, b.ts, a.srcIP FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND abs(a.ts - b.ts) <= 3 [UNMATCHED SLOW EVERY 2 ROWS WITHIN 30 SECONDS]

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts, a.srcIP AS srcIP FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts - INTERVAL 3 SECOND AND a.ts + INTERVAL 3 SECOND
