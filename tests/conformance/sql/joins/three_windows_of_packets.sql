-- The same over packets
-- given: A, B, C

SELECT A.ts, B.ts, C.ts
FROM A [RANGE 20 seconds], B [RANGE 40 seconds], C [RANGE 30 seconds]
WHERE A.srcIP = B.destIP AND B.srcIP = C.destIP AND A.len > 500

--- oracle
SELECT A.ts AS A_ts, B.ts AS B_ts, C.ts AS C_ts FROM A, B, C
WHERE A.srcIP = B.destIP AND B.srcIP = C.destIP AND A.len > 500
  AND B.ts > A.ts - INTERVAL 40 SECOND AND B.ts < A.ts + INTERVAL 20 SECOND
  AND C.ts > A.ts - INTERVAL 30 SECOND AND C.ts < A.ts + INTERVAL 20 SECOND
  AND C.ts > B.ts - INTERVAL 30 SECOND AND C.ts < B.ts + INTERVAL 40 SECOND
