-- approx_quantile is near the exact one
-- given: M
-- about: 8 %

SELECT approx_quantile(srcPort + coalesce(len, 0), 0.5) AS middle,
       approx_quantile(coalesce(len, 40), 0) AS least, approx_quantile(coalesce(len, 40), 1) AS most
FROM M [RANGE 5 minutes]

--- oracle
SELECT time_bucket(INTERVAL 5 MINUTE, ts) AS window_start,
       time_bucket(INTERVAL 5 MINUTE, ts) + INTERVAL 5 MINUTE AS window_end,
       quantile_cont(srcPort + coalesce(len, 0), 0.5) AS middle,
       min(coalesce(len, 40)) AS least, max(coalesce(len, 40)) AS most
FROM M GROUP BY ALL
