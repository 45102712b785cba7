-- The last four packets of each host, with every one of its packets
-- given: M

SELECT srcIP, count(*) AS n, sum(len) AS bytes, avg(len) AS mean
FROM M [PARTITION BY srcIP RANGE 4 ROWS SLIDE 1 ROW]

--- oracle
SELECT min(ts) OVER w AS window_start, ts AS window_end, srcIP, count(*) OVER w AS n,
       sum(len) OVER w AS bytes, avg(len) OVER w AS mean
FROM M WINDOW w AS (PARTITION BY srcIP ORDER BY ts, len ROWS 3 PRECEDING)
