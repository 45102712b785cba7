-- The bounds of a window join are strict: the other row lies after t - RANGE of the other and before t + RANGE of its own

SELECT L.ts, R.ts FROM L [RANGE 3 seconds], R [RANGE 2 seconds] WHERE L.k = R.k

--- stream L
ts | k
10 | a

--- stream R
ts | k
7 | a
8 | a
9 | a
10 | a
12 | a
13 | a
12 | b

--- rows
L_ts | R_ts
10 | 9
10 | 10
10 | 12
