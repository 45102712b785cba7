-- A band with abs(...), strict
-- given: A, B

SELECT A.ts, B.ts FROM A, B WHERE A.srcIP = B.srcIP AND abs(A.ts - B.ts) < 5

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts > B.ts - INTERVAL 5 SECOND AND A.ts < B.ts + INTERVAL 5 SECOND
