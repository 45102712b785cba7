-- Half a minute of each host, with every second packet; a host is forgotten after a minute
-- given: M

SELECT srcIP, count(*) AS n, last(len) AS latest
FROM M [PARTITION BY srcIP, RANGE 30 seconds, SLIDE 2 ROWS, EXPIRE 1 minute]

--- oracle
WITH G AS (SELECT srcIP, ts, len, coalesce(ts - lag(ts) OVER w >= seconds(60), false) AS gone
           FROM M WINDOW w AS (PARTITION BY srcIP ORDER BY ts, len)),
L AS (SELECT *, sum(gone::INT) OVER (PARTITION BY srcIP ORDER BY ts, len ROWS UNBOUNDED PRECEDING)
             AS life FROM G),
P AS (SELECT *, row_number() OVER (PARTITION BY srcIP, life ORDER BY ts, len) AS place FROM L)
SELECT a.ts - seconds(30) AS window_start, a.ts AS window_end, a.srcIP, count(*) AS n,
       last(b.len ORDER BY b.ts, b.len) FILTER (b.len IS NOT NULL) AS latest
FROM P a JOIN P b ON a.srcIP = b.srcIP AND a.life = b.life AND b.place <= a.place
    AND b.ts > a.ts - seconds(30)
WHERE a.place % 2 = 0 GROUP BY a.ts, a.place, a.life, a.srcIP
