-- Buckets and a band together
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.ts/10 = B.ts/10 AND A.ts >= B.ts - 3 AND A.ts <= B.ts + 3

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE bucket(A.ts, 10) = bucket(B.ts, 10)
  AND A.ts BETWEEN B.ts - INTERVAL 3 SECOND AND B.ts + INTERVAL 3 SECOND
