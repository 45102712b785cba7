-- Q8: equal times, one input a union (OOP §8.2)
-- given: M1, M2, C

SELECT M1.srcIP, M1.destIP, M1.ts
FROM M1, M2 Union C as M3
WHERE M1.ts = M3.ts and M1.srcIP = M3.destIP and
M1.destIP = M3.srcIP and M1.srcPort = M3.destPort and
M1.destPort = M3.srcPort

--- oracle
SELECT M1.srcIP AS srcIP, M1.destIP AS destIP, M1.ts AS ts
FROM M1, (FROM M2 UNION ALL FROM C) M3
WHERE M1.ts = M3.ts AND M1.srcIP = M3.destIP AND M1.destIP = M3.srcIP
  AND M1.srcPort = M3.destPort AND M1.destPort = M3.srcPort
