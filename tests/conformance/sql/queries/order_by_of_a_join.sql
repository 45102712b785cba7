-- ORDER BY one time of a join
-- given: A, B
-- in order of: B_ts

SELECT A.ts, B.ts, A.len FROM A, B WHERE A.srcIP = B.srcIP AND abs(A.ts - B.ts) <= 6 ORDER BY B.ts

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts, A.len AS len FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - INTERVAL 6 SECOND AND B.ts + INTERVAL 6 SECOND
