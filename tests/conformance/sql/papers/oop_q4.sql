-- Q4: packets per pair of hosts and minute (OOP §8.1)
-- given: M

SELECT srcIP, destIP, count(*)
      FROM M [WA ts, RANGE 1 min, SLIDE 1 min]
      GROUP BY srcIP, destIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end,
       srcIP AS srcIP, destIP AS destIP, count(*) AS count
FROM M GROUP BY ALL
