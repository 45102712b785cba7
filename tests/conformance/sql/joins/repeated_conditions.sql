-- The same condition twice, and two columns equal to the same one
-- given: A, B

SELECT A.ts, B.len FROM A, B
WHERE A.ts = B.ts AND A.srcIP = B.srcIP AND B.srcIP = A.srcIP AND A.flag = B.flag AND A.srcIP <> B.destIP
  AND upper(A.flag) = upper(B.flag)

--- oracle
SELECT A.ts AS ts, B.len AS len FROM A, B
WHERE A.ts = B.ts AND A.srcIP = B.srcIP AND A.flag = B.flag AND A.srcIP <> B.destIP
