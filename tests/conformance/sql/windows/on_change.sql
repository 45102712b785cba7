-- A window that moves with every row answers when rows come and exactly when they leave

SELECT count(*) AS n, sum(v) AS total, max(v) AS most FROM K [RANGE 5 seconds, SLIDE ON CHANGE, WA ts]

--- stream K
ts | v
14 | 4
1 | 1
6 | null
3 | 2
3 | 7

--- rows
window_start | window_end | n | total | most
-4 | 1 | 1 | 1 | 1
-2 | 3 | 3 | 10 | 7
1 | 6 | 3 | 9 | 7
3 | 8 | 1 | null | null
6 | 11 | 0 | null | null
9 | 14 | 1 | 4 | 4
14 | 19 | 0 | null | null
