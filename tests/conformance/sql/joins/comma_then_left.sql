-- A comma join bounded in WHERE, and then an outer one
-- given: A, B, C

SELECT a.ts, b.ts, c.ts FROM A a, B b LEFT JOIN C c ON c.ts = b.ts
WHERE a.ts = b.ts AND a.srcIP = b.srcIP

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM A a JOIN B b ON a.ts = b.ts AND a.srcIP = b.srcIP LEFT JOIN C c ON c.ts = b.ts
