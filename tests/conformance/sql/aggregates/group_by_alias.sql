-- Groups by a name given in the select list
-- given: M

SELECT CASE WHEN len > 700 THEN 'big' WHEN len > 75 THEN 'middle' ELSE 'small' END AS size,
       count(*) AS n
FROM M [RANGE 2 minutes] GROUP BY size

--- oracle
SELECT time_bucket(INTERVAL 2 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 2 MINUTE, ts) + INTERVAL 2 MINUTE AS window_end,
       CASE WHEN len > 700 THEN 'big' WHEN len > 75 THEN 'middle' ELSE 'small' END AS size,
       count(*) AS n
FROM M GROUP BY ALL
