-- SEMI and ANTI JOIN by name
-- given: A, B

SELECT * FROM (SELECT a.ts, a.len FROM A a SEMI JOIN B b ON a.ts = b.ts AND a.srcIP = b.srcIP)
UNION ALL
SELECT * FROM (SELECT a.ts, a.len FROM A a ANTI JOIN B b ON a.ts = b.ts)

--- oracle
SELECT ts AS ts, len AS len FROM A a
WHERE EXISTS (SELECT 1 FROM B b WHERE a.ts = b.ts AND a.srcIP = b.srcIP)
   OR NOT EXISTS (SELECT 1 FROM B b WHERE a.ts = b.ts)
