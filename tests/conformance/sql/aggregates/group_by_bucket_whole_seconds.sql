-- Buckets of whole seconds, and computing with their number
-- given: Steps

SELECT ts/7*7 AS since, sum(v) AS total FROM Steps GROUP BY ts/7

--- oracle
SELECT CAST(floor(ts / 7) AS BIGINT) * 7 AS since, CAST(sum(v) AS BIGINT) AS total FROM Steps
GROUP BY ALL
