-- Q7: a window over a band join (OOP §8.2)
-- given: M1, M2, n = 30

SELECT count(*)
[RANGE 1 min, SLIDE 1 min, WA M1.ts]
FROM M1, M2
WHERE M1.ts ≥ M2.ts - n and M1.ts ≤ M2.ts + n and
M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and
M1.srcPort = M2.destPort and M1.destPort = M2.srcPort

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, M1.ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, M1.ts) + INTERVAL 1 MINUTE AS window_end, count(*) AS count
FROM M1, M2
WHERE M1.ts BETWEEN M2.ts - INTERVAL 30 SECOND AND M2.ts + INTERVAL 30 SECOND
  AND M1.srcIP = M2.destIP AND M1.destIP = M2.srcIP
  AND M1.srcPort = M2.destPort AND M1.destPort = M2.srcPort
GROUP BY ALL
