-- Groups by the time itself need no window
-- given: Steps

SELECT ts, count(*) AS n, max(v) AS most FROM Steps GROUP BY ts

--- oracle
SELECT ts AS ts, count(*) AS n, max(v) AS most FROM Steps GROUP BY ts
