-- Every third packet of each pair of hosts, for its last five; the answers name their end only
-- given: M1, M2

SELECT window_end, srcIP, destIP, max(len) AS most
FROM M1 UNION M2 [PARTITION BY srcIP, destIP, RANGE 5 ROWS, SLIDE 3 ROWS, WA ts]
GROUP BY srcIP, destIP HAVING max(len) > 60

--- oracle
SELECT window_end, srcIP, destIP, most FROM (
    SELECT ts AS window_end, srcIP, destIP, max(len) OVER w AS most, row_number() OVER w AS place
    FROM (SELECT ts, srcIP, destIP, len FROM M1 UNION ALL SELECT ts, srcIP, destIP, len FROM M2)
    WINDOW w AS (PARTITION BY srcIP, destIP ORDER BY ts, len ROWS 4 PRECEDING))
WHERE place % 3 = 0 AND most > 60
