-- SYN packets that were answered but not reset: both in one WHERE, over an aggregate
-- given: S0, S1

SELECT srcIP, count(*) AS n FROM S0 s [RANGE 1 minute]
WHERE s.flag = 'SYN'
  AND EXISTS (SELECT 1 FROM S1 a WHERE a.srcIP = s.destIP AND a.flag = 'SYN_ACK'
              AND a.ts > s.ts AND a.ts < s.ts + 30)
  AND NOT EXISTS (SELECT 1 FROM S1 r WHERE r.srcIP = s.destIP AND r.flag = 'ACK'
                  AND r.ts > s.ts AND r.ts < s.ts + 10)
GROUP BY srcIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, s.ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, s.ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, count(*) AS n FROM S0 s
WHERE s.flag = 'SYN'
  AND EXISTS (SELECT 1 FROM S1 a WHERE a.srcIP = s.destIP AND a.flag = 'SYN_ACK'
              AND a.ts > s.ts AND a.ts < s.ts + INTERVAL 30 SECOND)
  AND NOT EXISTS (SELECT 1 FROM S1 r WHERE r.srcIP = s.destIP AND r.flag = 'ACK'
                  AND r.ts > s.ts AND r.ts < s.ts + INTERVAL 10 SECOND)
GROUP BY ALL
