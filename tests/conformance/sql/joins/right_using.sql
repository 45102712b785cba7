-- USING in a right join names the right side's column
-- given: A, B

SELECT srcIP, a.ts, b.ts FROM A a RIGHT JOIN B b USING (srcIP, ts) WHERE b.len IS NULL

--- oracle
SELECT b.srcIP AS srcIP, a.ts AS a_ts, b.ts AS b_ts FROM A a RIGHT JOIN B b
ON a.srcIP = b.srcIP AND a.ts = b.ts WHERE b.len IS NULL
