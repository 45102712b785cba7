-- A row is in every window that covers it, those that began before the first row too

SELECT count(*) AS n FROM K [RANGE 10 seconds, SLIDE 4 seconds]

--- stream K
ts | v
5 | 1
9 | 1

--- rows
window_start | window_end | n
-4 | 6 | 1
0 | 10 | 2
4 | 14 | 2
8 | 18 | 1
