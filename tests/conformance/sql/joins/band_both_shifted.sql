-- Constants on both sides
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts + 2 >= B.ts - 3 AND A.ts - INTERVAL '1' SECOND <= (B.ts + 6)

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts >= B.ts - INTERVAL 5 SECOND AND A.ts <= B.ts + INTERVAL 7 SECOND
