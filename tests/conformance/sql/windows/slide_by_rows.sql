-- A minute that is answered with every fifth packet of the stream
-- given: M

SELECT count(*) AS n, sum(len) AS bytes FROM M [RANGE 1 minute SLIDE 5 ROWS]

--- oracle
WITH P AS (SELECT ts, len, row_number() OVER (ORDER BY ts, len) AS place FROM M)
SELECT a.ts - seconds(60) AS window_start, a.ts AS window_end, count(*) AS n, sum(b.len) AS bytes
FROM P a JOIN P b ON b.place <= a.place AND b.ts > a.ts - seconds(60)
WHERE a.place % 5 = 0 GROUP BY a.ts, a.place
