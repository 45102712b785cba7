-- Nulls are a group of their own
-- given: Mixed

SELECT s, yes, count(*) AS n, sum(i) AS total FROM Mixed [RANGE 30 seconds] GROUP BY s, yes

--- oracle
SELECT time_bucket(INTERVAL 30 SECOND, ts) AS window_start,
       time_bucket(INTERVAL 30 SECOND, ts) + INTERVAL 30 SECOND AS window_end,
       s AS s, yes AS yes, count(*) AS n, CAST(sum(i) AS BIGINT) AS total
FROM Mixed GROUP BY ALL
