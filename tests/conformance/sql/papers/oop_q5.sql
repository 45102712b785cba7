-- Q5: the same over a union (OOP §8.1)
-- given: M1, M2

SELECT srcIP, destIP, count(*)
FROM M1 UNION M2
[RANGE 1 min, SLIDE 1 min, WA ts]
GROUP BY srcIP, destIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, destIP AS destIP, count(*) AS count
FROM (FROM M1 UNION ALL FROM M2) GROUP BY ALL
