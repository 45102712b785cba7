-- Conditions on the same times add up; what is left of them is still checked
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND abs(A.ts - B.ts) <= 20 AND A.ts <= B.ts + 5 AND A.ts <> B.ts
  AND B.ts BETWEEN A.ts - 100 AND greatest(A.ts + 10, A.ts + 3)

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts >= A.ts - INTERVAL 5 SECOND AND B.ts <= A.ts + INTERVAL 10 SECOND
  AND A.ts <> B.ts
