-- Packets, bytes and ports of each host over the last half minute, whenever one of them changes
-- given: M

SELECT srcIP, count(*) AS n, sum(len) AS bytes, count(DISTINCT destPort) AS ports, min(len) AS least
FROM M [WA ts, SLIDE ON CHANGE, RANGE 30 seconds] WHERE flag <> 'ACK' GROUP BY srcIP

--- oracle
WITH answers AS (
    SELECT t, e.srcIP, count(m.ts) AS n, sum(m.len) AS bytes, count(DISTINCT m.destPort) AS ports,
           min(m.len) AS least
    FROM (SELECT ts AS t, srcIP FROM M WHERE flag <> 'ACK'
          UNION SELECT ts + seconds(30), srcIP FROM M WHERE flag <> 'ACK') e
    LEFT JOIN M m ON m.srcIP = e.srcIP AND m.flag <> 'ACK' AND m.ts <= t AND m.ts > t - seconds(30)
    GROUP BY ALL)
SELECT t - seconds(30) AS window_start, t AS window_end, srcIP, n, bytes, ports, least FROM answers
WINDOW w AS (PARTITION BY srcIP ORDER BY t)
QUALIFY n <> lag(n, 1, 0) OVER w OR bytes IS DISTINCT FROM lag(bytes) OVER w
    OR ports <> lag(ports, 1, 0) OVER w OR least IS DISTINCT FROM lag(least) OVER w
