-- TUMBLE without TABLE, and with an alias
-- given: M

SELECT t.window_end, max(t.len) AS most
FROM TUMBLE(M, DESCRIPTOR(ts), 1 minute) AS t GROUP BY t.window_end

--- oracle
SELECT time_bucket(INTERVAL 1 MINUTE, ts) + INTERVAL 1 MINUTE AS window_end, max(len) AS most
FROM M GROUP BY ALL
