-- The union of two filtered streams (ETS Fig. 4), in order
-- given: Main1, Control
-- in order of: ts

SELECT * FROM Main1 WHERE len > 75
UNION ALL
SELECT * FROM Control WHERE len > 75
ORDER BY ts

--- oracle
SELECT srcIP AS srcIP, srcPort AS srcPort, destIP AS destIP, destPort AS destPort, len AS len,
       flag AS flag, ts AS ts
FROM (FROM Main1 UNION ALL FROM Control) WHERE len > 75
