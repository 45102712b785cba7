-- A trailing WINDOW over a join is that of the aggregate too: an answer at each change, for each host
-- given: A, B

SELECT A.srcIP AS host, count(*) AS n, max(B.len) AS most FROM A, B WHERE A.srcIP = B.srcIP
GROUP BY A.srcIP WINDOW 20 seconds

--- oracle
WITH P AS (SELECT A.srcIP AS host, B.len, greatest(A.ts, B.ts) AS moment FROM A, B
           WHERE A.srcIP = B.srcIP AND B.ts >= A.ts - seconds(20) AND B.ts <= A.ts + seconds(20)),
answers AS (
    SELECT t, e.host, count(p.moment) AS n, max(p.len) AS most
    FROM (SELECT moment AS t, host FROM P UNION SELECT moment + seconds(20), host FROM P) e
    LEFT JOIN P p ON p.host = e.host AND p.moment <= t AND p.moment > t - seconds(20) GROUP BY ALL)
SELECT t - seconds(20) AS window_start, t AS window_end, host, n, most FROM answers
WINDOW w AS (PARTITION BY host ORDER BY t)
QUALIFY n <> lag(n, 1, 0) OVER w OR most IS DISTINCT FROM lag(most) OVER w
