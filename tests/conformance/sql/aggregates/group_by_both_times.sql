-- Groups by both times of a join, and by one of them
-- given: A, B

SELECT A.ts, B.ts, count(*) AS n, sum(A.len) AS total FROM A, B
WHERE A.ts BETWEEN B.ts - 2 AND B.ts GROUP BY A.ts, B.ts

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts, count(*) AS n, CAST(sum(A.len) AS BIGINT) AS total FROM A, B
WHERE A.ts BETWEEN B.ts - INTERVAL 2 SECOND AND B.ts GROUP BY A.ts, B.ts
