-- The trailing WINDOW of three sources bounds any two of them, and the aggregate; its ends belong to it
-- given: A, B, C

SELECT count(*) AS n FROM A, B, C WHERE A.srcIP = B.srcIP AND B.srcIP = C.srcIP WINDOW 5 seconds

--- oracle
WITH P AS (SELECT greatest(A.ts, B.ts, C.ts) AS moment FROM A, B, C
           WHERE A.srcIP = B.srcIP AND B.srcIP = C.srcIP
             AND greatest(A.ts, B.ts, C.ts) - least(A.ts, B.ts, C.ts) <= seconds(5)),
answers AS (
    SELECT t, count(p.moment) AS n
    FROM (SELECT moment AS t FROM P UNION SELECT moment + seconds(5) FROM P)
    LEFT JOIN P p ON p.moment <= t AND p.moment > t - seconds(5) GROUP BY t)
SELECT t - seconds(5) AS window_start, t AS window_end, n FROM answers
QUALIFY n <> lag(n, 1, 0) OVER (ORDER BY t)
