-- Groups by the times of three joined streams, two of them cut to seconds
-- given: A, B, C

SELECT A.ts, date_trunc('second', B.ts) AS tb, date_trunc('second', C.ts) AS tc, count(*) AS n
FROM A, B, C
WHERE A.ts BETWEEN B.ts - 2 AND B.ts AND C.ts BETWEEN B.ts - 1 AND B.ts + 1
GROUP BY A.ts, tb, tc HAVING count(*) > 1

--- oracle
SELECT A.ts AS ts, date_trunc('second', B.ts) AS tb, date_trunc('second', C.ts) AS tc, count(*) AS n
FROM A, B, C
WHERE A.ts BETWEEN B.ts - INTERVAL 2 SECOND AND B.ts
  AND C.ts BETWEEN B.ts - INTERVAL 1 SECOND AND B.ts + INTERVAL 1 SECOND
GROUP BY A.ts, tb, tc HAVING count(*) > 1
