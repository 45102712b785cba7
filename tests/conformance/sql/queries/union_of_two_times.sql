-- Different times under one name: the union progresses on it

SELECT window_start, count(*) AS n
FROM (SELECT ts AS at, k FROM S UNION ALL SELECT sent AS at, k FROM T) AS U [RANGE 10 seconds, WA at]

--- stream S
ts | k
1 | 1
9 | 2

--- stream T
sent | k
2 | 1
19 | 2

--- rows
window_start | n
0 | 3
10 | 1
