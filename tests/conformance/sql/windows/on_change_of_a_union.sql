-- How many packets were seen on either link within ten seconds, where that is more than five
-- given: A, B, length = "10 seconds"
-- in order of: at

SELECT window_end AS at, count(*) AS n FROM A UNION B [RANGE :length, SLIDE on change] HAVING n > 5 ORDER BY at

--- oracle
WITH U AS (SELECT ts FROM A UNION ALL SELECT ts FROM B),
answers AS (
    SELECT t, count(u.ts) AS n
    FROM (SELECT ts AS t FROM U UNION SELECT ts + seconds(10) FROM U)
    LEFT JOIN U u ON u.ts <= t AND u.ts > t - seconds(10) GROUP BY t)
SELECT t AS "at", n FROM (
    SELECT t, n FROM answers QUALIFY n <> lag(n, 1, 0) OVER (ORDER BY t)) WHERE n > 5
