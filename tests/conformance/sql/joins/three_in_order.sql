-- Three sources, ordered by the greatest of their times
-- given: A, B, C, alpha = 0.5
-- in order of: at

SELECT A.srcIP, GREATEST(A.ts, B.ts, C.ts) AS at
FROM A JOIN B ON A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 20 AND A.ts + 9
       JOIN C ON B.srcIP = C.srcIP AND C.ts BETWEEN B.ts - 15 AND B.ts + 15
ORDER BY at USING ADAPTIVE ALPHA :alpha

--- oracle
SELECT A.srcIP AS srcIP, greatest(A.ts, B.ts, C.ts) AS at
FROM A JOIN B ON A.srcIP = B.srcIP
             AND B.ts BETWEEN A.ts - INTERVAL 20 SECOND AND A.ts + INTERVAL 9 SECOND
       JOIN C ON B.srcIP = C.srcIP
             AND C.ts BETWEEN B.ts - INTERVAL 15 SECOND AND B.ts + INTERVAL 15 SECOND
