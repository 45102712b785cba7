-- A window over a time that was shifted in a sub-query
-- given: M

SELECT count(*) AS n FROM (SELECT ts + INTERVAL '90' SECOND AS later FROM M) [RANGE 1 minute, WA later]

--- oracle
SELECT date_trunc('minute', ts + INTERVAL 90 SECOND) AS window_start,
       date_trunc('minute', ts + INTERVAL 90 SECOND) + INTERVAL 1 MINUTE AS window_end, count(*) AS n
FROM M GROUP BY ALL
