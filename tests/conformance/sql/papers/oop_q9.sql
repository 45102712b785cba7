-- Q9: a sliding window; those that began before the first row are answered too (OOP §8.2)
-- given: M1, M2, C

SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts]
FROM M1 UNION M2 UNION C

--- oracle
SELECT window_start, window_start + INTERVAL 5 MINUTE AS window_end, count(*) AS count
FROM (SELECT unnest(starts(ts, 300, 60)) AS window_start
      FROM (FROM M1 UNION ALL FROM M2 UNION ALL FROM C))
GROUP BY window_start
