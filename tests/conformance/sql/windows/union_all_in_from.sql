-- UNION ALL between sources is the same
-- given: M1, M2

SELECT count(*) AS n FROM M1 UNION ALL M2 [RANGE 2 minutes]

--- oracle
SELECT window_start, window_start + INTERVAL 2 MINUTE AS window_end, count(*) AS n
FROM (SELECT unnest(starts(ts, 120, 120)) AS window_start, *
      FROM (FROM M1 UNION ALL FROM M2)) GROUP BY window_start
