-- In ON, a condition on the left side keeps rows from matching, it does not drop them
-- given: A, B

SELECT a.ts, b.ts FROM A a LEFT OUTER JOIN B b ON a.ts = b.ts AND a.len > 75

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts FROM A a LEFT JOIN B b ON a.ts = b.ts AND a.len > 75
