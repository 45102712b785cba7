-- WHERE with AND, OR, NOT and parentheses
-- given: M

SELECT ts, srcIP FROM M
WHERE (srcIP = '10.0.0.1' OR destIP = '10.0.0.1') AND NOT (flag = 'ACK' AND len IS NOT NULL) AND (srcPort = 22 AND (destPort = 80))

--- oracle
SELECT ts AS ts, srcIP AS srcIP FROM M
WHERE (srcIP = '10.0.0.1' OR destIP = '10.0.0.1') AND NOT (flag = 'ACK' AND len IS NOT NULL)
  AND srcPort = 22 AND destPort = 80
