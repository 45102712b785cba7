-- Q1: packets of three links per minute (OOP §2)
-- given: Control, Main1, Main2

SELECT count (*)
      FROM Control union Main1 union Main2
      [RANGE 1 minute, SLIDE 1 minute, WA ts]

--- oracle
SELECT window_start, window_start + INTERVAL 1 MINUTE AS window_end, count(*) AS count
FROM (SELECT unnest(starts(ts, 60, 60)) AS window_start FROM
      (FROM Control UNION ALL FROM Main1 UNION ALL FROM Main2))
GROUP BY window_start
