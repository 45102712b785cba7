-- Q3: answers to SYN packets, grouped by both times (OOP §7)
-- given: S0, S1, SYN = 'SYN', SYN_ACK = 'SYN_ACK'

SELECT S0.ts, S1.ts, count(*)
      FROM S0 [WA ts, RANGE 2 min],
           S1 [WA ts, RANGE 2 min]
      WHERE S0.destIP = S1.srcIP AND S0.destPort = S1.srcPort
            AND S0.flag = SYN AND S1.flag = SYN_ACK
            AND S0.ts < S1.ts
      GROUP BY S0.ts, S1.ts;

--- oracle
SELECT S0.ts AS S0_ts, S1.ts AS S1_ts, count(*) AS count
FROM S0, S1
WHERE S0.destIP = S1.srcIP AND S0.destPort = S1.srcPort
  AND S0.flag = 'SYN' AND S1.flag = 'SYN_ACK'
  AND S0.ts < S1.ts AND S1.ts < S0.ts + INTERVAL 2 MINUTE
GROUP BY S0.ts, S1.ts
