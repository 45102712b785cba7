-- A band with abs(...), turned around and not strict
-- given: A, B

SELECT A.ts, B.ts FROM A, B WHERE A.srcIP = B.srcIP AND 5 >= abs(B.ts - A.ts)

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts FROM A, B
WHERE A.srcIP = B.srcIP AND A.ts BETWEEN B.ts - INTERVAL 5 SECOND AND B.ts + INTERVAL 5 SECOND
