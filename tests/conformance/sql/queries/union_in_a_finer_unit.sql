-- Whole seconds in milliseconds: the union progresses on them

SELECT window_start, count(*) AS n
FROM (SELECT ts * 1000 AS ts, k FROM S UNION ALL SELECT ts * 1000 AS ts, k FROM T) AS U
     [RANGE 10 seconds, WA ts]

--- stream S
ts | k
1 | 1
9 | 2
30 | 3

--- stream T
ts | k
2 | 1
19 | 2

--- rows
window_start | n
0 | 3
10000 | 1
30000 | 1
