-- A band alone, without equal columns
-- given: A, Control

SELECT A.ts, c.ts FROM A, Control c WHERE c.ts >= A.ts - 2 AND c.ts <= A.ts

--- oracle
SELECT A.ts AS A_ts, c.ts AS c_ts FROM A, Control c
WHERE c.ts >= A.ts - INTERVAL 2 SECOND AND c.ts <= A.ts
