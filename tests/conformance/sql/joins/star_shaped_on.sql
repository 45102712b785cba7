-- The same with JOIN ... ON
-- given: M1, M2, B

SELECT M1.ts, M2.len FROM M1 JOIN M2 ON M1.srcIP = M2.srcIP JOIN B ON M1.ts = B.ts AND M2.ts = B.ts

--- oracle
SELECT M1.ts AS ts, M2.len AS len FROM M1, M2, B
WHERE M1.ts = B.ts AND M2.ts = B.ts AND M1.srcIP = M2.srcIP
