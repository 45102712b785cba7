-- A union with an alias and then a clause
-- given: M1, M2

SELECT U.srcIP, sum(U.len) AS total FROM M1 UNION M2 AS U [RANGE 2 minutes, SLIDE 1 minute]
GROUP BY U.srcIP

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, srcIP AS srcIP,
       CAST(sum(len) AS BIGINT) AS total
FROM (SELECT unnest(starts(ts, 120, 60)) AS window_start, *
      FROM (FROM M1 UNION ALL FROM M2)) GROUP BY window_start, srcIP
