-- SLIDE longer than RANGE: rows between two windows are in none

SELECT count(*) AS n FROM K [RANGE 2 seconds, SLIDE 5 seconds]

--- stream K
ts | v
0 | 1
1 | 1
2 | 1
4 | 1
5 | 1
11 | 1

--- rows
window_start | window_end | n
0 | 2 | 2
5 | 7 | 1
10 | 12 | 1
