-- Q2: a sliding-window join; the bounds are strict (OOP §4.2)
-- given: Main1, Main2

SELECT *
     FROM Main1 [WA  ts, RANGE 3 min],
          Main2 [WA  ts, RANGE 2 min]
     WHERE Main1.srcIP = Main2.destIP;

--- oracle
SELECT a.srcIP AS Main1_srcIP, a.srcPort AS Main1_srcPort, a.destIP AS Main1_destIP,
       a.destPort AS Main1_destPort, a.len AS Main1_len, a.flag AS Main1_flag, a.ts AS Main1_ts,
       b.srcIP AS Main2_srcIP, b.srcPort AS Main2_srcPort, b.destIP AS Main2_destIP,
       b.destPort AS Main2_destPort, b.len AS Main2_len, b.flag AS Main2_flag, b.ts AS Main2_ts
FROM Main1 a, Main2 b
WHERE a.srcIP = b.destIP
  AND b.ts > a.ts - INTERVAL 2 MINUTE AND b.ts < a.ts + INTERVAL 3 MINUTE
