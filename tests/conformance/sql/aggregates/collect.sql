-- collect: all values that are not null, in order of time and then of value

SELECT k, collect(v) AS vs, collect(v) FILTER (WHERE v > 5) AS big, array_agg(w) AS ws
FROM K [RANGE 10 seconds] GROUP BY k

--- stream K
ts | k | v | w
4 | a | 9 | x
1 | a | 3 | null
4 | a | 2 | z
2 | b | null | y
12 | a | 7 | null

--- rows
window_start | window_end | k | vs | big | ws
0 | 10 | a | [3, 2, 9] | [9] | ['x', 'z']
0 | 10 | b | [] | [] | ['y']
10 | 20 | a | [7] | [7] | []
