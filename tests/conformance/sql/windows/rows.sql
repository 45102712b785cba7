-- A window of rows counts them as they came in

SELECT window_start, sum(v) AS total FROM K [RANGE 3 ROWS]

--- stream K
ts | v
5 | 1
2 | 10
9 | 100
3 | 1000
4 | 10000

--- rows
window_start | total
0 | 111
3 | 11000
