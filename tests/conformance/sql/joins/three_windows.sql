-- Windows on three sources hold between any two of them

SELECT a.ts, b.ts, c.ts
FROM L AS a [RANGE 3 seconds], R AS b [RANGE 5 seconds], S AS c [RANGE 4 seconds]

--- stream L
ts | k
10 | a

--- stream R
ts | k
6 | a
12 | a

--- stream S
ts | k
7 | a
9 | a
12 | a

--- rows
a_ts | b_ts | c_ts
10 | 6 | 7
10 | 6 | 9
10 | 12 | 9
10 | 12 | 12
