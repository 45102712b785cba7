-- Windows of rows that slide by rows
-- given: Steps

SELECT count(*) AS n, min(ts) AS first FROM Steps [RANGE 40 ROWS, SLIDE 20 ROWS]

--- oracle
SELECT window_start, window_start + 40 AS window_end, count(*) AS n, min(ts) AS first
FROM (SELECT unnest(whole_starts(place, 40, 20)) AS window_start, ts
      FROM (SELECT ts, row_number() OVER () - 1 AS place FROM Steps)) GROUP BY window_start
