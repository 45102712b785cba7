-- A band with BETWEEN; a bare number beside a time is seconds
-- given: A, B

SELECT A.ts, B.ts, A.len FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 5 AND A.ts + 10

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts, A.len AS len FROM A, B
WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - INTERVAL 5 SECOND AND A.ts + INTERVAL 10 SECOND
