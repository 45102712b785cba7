-- NOT EXISTS on times alone

SELECT ts FROM L WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.ts > L.ts AND R.ts <= L.ts + 3)

--- stream L
ts | k
1 | a
4 | a
9 | a

--- stream R
ts | k
4 | b
9 | b
13 | b

--- rows
ts
4
9
