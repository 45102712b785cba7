-- JOIN ... USING: the column comes once, and may be named without its source
-- given: A, B

SELECT srcIP, A.ts, B.ts FROM A INNER JOIN B USING (srcIP) WHERE abs(A.ts - B.ts) <= 4

--- oracle
SELECT A.srcIP AS srcIP, A.ts AS A_ts, B.ts AS B_ts FROM A JOIN B USING (srcIP)
WHERE B.ts BETWEEN A.ts - INTERVAL 4 SECOND AND A.ts + INTERVAL 4 SECOND
