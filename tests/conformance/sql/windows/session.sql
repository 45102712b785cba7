-- A row a gap or more after the last one begins a new session; it ends a gap after its last row

SELECT k, count(*) AS n, sum(v) AS total FROM K [SESSION 5 seconds, WA ts] GROUP BY k

--- stream K
ts | k | v
14 | a | 4
1 | a | 1
5 | a | 2
10 | a | 3
7 | b | 5
11 | b | 6
19 | a | 7

--- rows
window_start | window_end | k | n | total
1 | 10 | a | 2 | 3
10 | 19 | a | 2 | 7
19 | 24 | a | 1 | 7
7 | 16 | b | 2 | 11
