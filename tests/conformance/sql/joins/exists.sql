-- EXISTS within a band: rows that have a partner, each once
-- given: A, B

SELECT ts, srcIP FROM A a
WHERE EXISTS (SELECT 1 FROM B b WHERE b.srcIP = a.srcIP AND b.ts BETWEEN a.ts - 4 AND a.ts + 4)

--- oracle
SELECT ts AS ts, srcIP AS srcIP FROM A a
WHERE EXISTS (SELECT 1 FROM B b WHERE b.srcIP = a.srcIP
              AND b.ts BETWEEN a.ts - INTERVAL 4 SECOND AND a.ts + INTERVAL 4 SECOND)
