-- EXISTS over the rows of a join
-- given: A, B, C

SELECT a.ts, b.ts FROM A a JOIN B b ON a.ts = b.ts
WHERE NOT EXISTS (SELECT 1 FROM C c WHERE c.srcIP = b.srcIP AND c.ts BETWEEN a.ts - 5 AND a.ts)

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts FROM A a JOIN B b ON a.ts = b.ts
WHERE NOT EXISTS (SELECT 1 FROM C c WHERE c.srcIP = b.srcIP
                  AND c.ts BETWEEN a.ts - INTERVAL 5 SECOND AND a.ts)
