-- Bounds that no two times meet: every left row comes without a partner

SELECT L.ts AS one, L.v AS v, R.ts AS two FROM L LEFT JOIN R ON L.ts > R.ts AND L.ts < R.ts + 1

--- stream L
ts | v
2 | 20
2 | 30

--- stream R
ts | w
2 | 1
2 | 2

--- oracle
SELECT L.ts AS one, L.v AS v, R.ts AS two FROM L LEFT JOIN R ON L.ts > R.ts AND L.ts < R.ts + 1
