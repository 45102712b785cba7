-- A full join, and a time that is never null
-- given: A, B

SELECT coalesce(a.ts, b.ts) AS ts, a.len, b.len FROM A a FULL OUTER JOIN B b
ON a.srcIP = b.srcIP AND a.ts = b.ts

--- oracle
SELECT coalesce(a.ts, b.ts) AS ts, a.len AS a_len, b.len AS b_len FROM A a FULL JOIN B b
ON a.srcIP = b.srcIP AND a.ts = b.ts
