-- NOT EXISTS within a band: rows that have no partner, and conditions on both sides
-- given: A, B

SELECT ts, srcIP, len FROM A
WHERE len > 75 AND NOT EXISTS (
    SELECT * FROM B WHERE B.srcIP = A.srcIP AND B.len > A.len AND B.flag <> 'ACK'
      AND abs(B.ts - A.ts) <= 20)

--- oracle
SELECT ts AS ts, srcIP AS srcIP, len AS len FROM A
WHERE len > 75 AND NOT EXISTS (
    SELECT * FROM B WHERE B.srcIP = A.srcIP AND B.len > A.len AND B.flag <> 'ACK'
      AND B.ts BETWEEN A.ts - INTERVAL 20 SECOND AND A.ts + INTERVAL 20 SECOND)
