-- A computed group that is called like a column does not stand in for it
-- given: M

SELECT len * 2 AS len, sum(len) AS total, count(*) AS n FROM M [RANGE 1 hour] GROUP BY len * 2

--- oracle
SELECT date_trunc('hour', ts) AS window_start, date_trunc('hour', ts) + INTERVAL 1 HOUR AS window_end,
       len * 2 AS len, CAST(sum(M.len) AS BIGINT) AS total, count(*) AS n
FROM M GROUP BY date_trunc('hour', ts), M.len
