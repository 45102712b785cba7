-- Computing inside and around aggregates
-- given: M

SELECT srcIP, sum(len * 2) / count(*) AS mean, round(avg(len), 1) AS rounded,
       coalesce(max(len), 0) - coalesce(min(len), 0) AS spread,
       CASE WHEN count(*) > 5 THEN 'busy' ELSE 'calm' END AS state
FROM M [RANGE 1 minute] GROUP BY srcIP

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end, srcIP AS srcIP,
       sum(len * 2) / count(*) AS mean, round(avg(len), 1) AS rounded,
       coalesce(max(len), 0) - coalesce(min(len), 0) AS spread,
       CASE WHEN count(*) > 5 THEN 'busy' ELSE 'calm' END AS state
FROM M GROUP BY ALL
