-- The SESSION table function, over all rows
-- given: Rooms

SELECT window_start, window_end, count(*) AS n
FROM SESSION(TABLE Rooms, DESCRIPTOR(ts), INTERVAL '40' SECONDS)

--- oracle
SELECT min(ts) AS window_start, max(ts) + INTERVAL 40 SECOND AS window_end, count(*) AS n
FROM (SELECT *, sum(begins) OVER (ORDER BY ts RANGE UNBOUNDED PRECEDING) AS s
      FROM (SELECT *, CASE WHEN ts - lag(ts) OVER (ORDER BY ts)
                            < INTERVAL 40 SECOND THEN 0 ELSE 1 END AS begins FROM Rooms))
GROUP BY s
