-- Q6: a tumbling-window join of two unions (OOP §8.1)
-- given: A, B, C, D

SELECT M1.srcIP, M1.destIP, M1.ts
FROM A UNION B as M1, C UNION D as M2
WHERE M1.ts/10 = M2.ts/10 and M1.srcIP = M2.destIP and
M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and
M1.destPort = M2.srcPort

--- oracle
SELECT M1.srcIP AS srcIP, M1.destIP AS destIP, M1.ts AS ts
FROM (FROM A UNION ALL FROM B) M1, (FROM C UNION ALL FROM D) M2
WHERE bucket(M1.ts, 10) = bucket(M2.ts, 10) AND M1.srcIP = M2.destIP AND M1.destIP = M2.srcIP
  AND M1.srcPort = M2.destPort AND M1.destPort = M2.srcPort
