-- Groups by the later of both times
-- given: A, B

SELECT greatest(A.ts, B.ts) AS at, count(*) AS n FROM A, B
WHERE A.srcIP = B.srcIP AND abs(A.ts - B.ts) <= 10 GROUP BY greatest(A.ts, B.ts)

--- oracle
SELECT greatest(A.ts, B.ts) AS "at", count(*) AS n FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - INTERVAL 10 SECOND AND B.ts + INTERVAL 10 SECOND
GROUP BY ALL
