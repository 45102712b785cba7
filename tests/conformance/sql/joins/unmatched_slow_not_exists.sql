-- Rows of NOT EXISTS leave slowly, and are the same
-- given: A, B

SELECT ts, srcIP, len FROM A
WHERE NOT EXISTS (SELECT * FROM B WHERE B.srcIP = A.srcIP AND abs(B.ts - A.ts) <= 2)
[UNMATCHED SLOW EVERY 3 ROWS WITHIN 20 SECONDS]

--- oracle
SELECT ts AS ts, srcIP AS srcIP, len AS len FROM A
WHERE NOT EXISTS (
    SELECT * FROM B WHERE B.srcIP = A.srcIP
      AND B.ts BETWEEN A.ts - INTERVAL 2 SECOND AND A.ts + INTERVAL 2 SECOND)
