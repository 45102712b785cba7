-- Groups by expressions, used again in the select list
-- given: M

SELECT srcPort + destPort AS ports, upper(flag), (srcPort + destPort) * 2 AS twice, count(*) AS n
FROM M [RANGE 3 minutes] GROUP BY srcPort + destPort, upper(flag)

--- oracle
SELECT time_bucket(INTERVAL 3 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 3 MINUTE, ts) + INTERVAL 3 MINUTE AS window_end,
       srcPort + destPort AS ports, upper(flag) AS upper, (srcPort + destPort) * 2 AS twice,
       count(*) AS n
FROM M GROUP BY window_start, window_end, ports, upper(flag)
