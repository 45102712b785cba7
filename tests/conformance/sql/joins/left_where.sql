-- WHERE comes after an outer join
-- given: A, B

SELECT a.ts, a.srcIP FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND abs(a.ts - b.ts) <= 3
WHERE b.ts IS NULL AND a.len > 75

--- oracle
SELECT a.ts AS ts, a.srcIP AS srcIP FROM A a LEFT JOIN B b
ON a.srcIP = b.srcIP AND b.ts BETWEEN a.ts - INTERVAL 3 SECOND AND a.ts + INTERVAL 3 SECOND
WHERE b.ts IS NULL AND a.len > 75
