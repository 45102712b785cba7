-- The window after the aggregate, over a join whose sources have windows of their own
-- given: S0, S1

SELECT S0.flag, count(*) AS n [RANGE 20 seconds, SLIDE ON CHANGE, WA S1.ts]
FROM S0 [RANGE 5 seconds], S1 [RANGE 5 seconds] WHERE S0.srcIP = S1.srcIP GROUP BY S0.flag

--- oracle
WITH P AS (
    SELECT S0.flag, S1.ts FROM S0, S1 WHERE S0.srcIP = S1.srcIP
    AND S1.ts > S0.ts - seconds(5) AND S1.ts < S0.ts + seconds(5)),
answers AS (
    SELECT t, e.flag, count(p.ts) AS n
    FROM (SELECT ts AS t, flag FROM P UNION SELECT ts + seconds(20), flag FROM P) e
    LEFT JOIN P p ON p.flag = e.flag AND p.ts <= t AND p.ts > t - seconds(20) GROUP BY ALL)
SELECT t - seconds(20) AS window_start, t AS window_end, flag, n FROM answers
QUALIFY n <> lag(n, 1, 0) OVER (PARTITION BY flag ORDER BY t)
