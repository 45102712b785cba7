-- Sessions whose answers leave slowly are the same
-- given: M

SELECT srcIP, count(*) AS n FROM M [SESSION 12 seconds, FLUSH SLOW EVERY 4 ROWS WITHIN 1 MINUTE]
GROUP BY srcIP

--- oracle
SELECT min(ts) AS window_start, max(ts) + INTERVAL 12 SECOND AS window_end, srcIP AS srcIP,
       count(*) AS n
FROM (SELECT *, sum(begins) OVER (PARTITION BY srcIP ORDER BY ts RANGE UNBOUNDED PRECEDING) AS s
      FROM (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY srcIP ORDER BY ts)
                            < INTERVAL 12 SECOND THEN 0 ELSE 1 END AS begins FROM M))
GROUP BY srcIP, s
