-- The sides of a band in the other order
-- given: A, B

SELECT A.ts, B.ts FROM A, B
WHERE B.ts - 5 <= A.ts AND B.ts + 7 > A.ts AND A.srcIP = B.srcIP

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts >= B.ts - INTERVAL 5 SECOND AND A.ts < B.ts + INTERVAL 7 SECOND
