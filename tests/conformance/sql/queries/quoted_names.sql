-- Names in quotation marks

SELECT "a b", "select" AS "x y", count(*) AS "how many" FROM "my stream" [RANGE 10 seconds, WA "the time"] GROUP BY "a b", "select"

--- stream my stream
the time | a b | select
1 | p | 1
2 | p | 1
3 | q | 2

--- rows
window_start | window_end | a b | x y | how many
0 | 10 | p | 1 | 2
0 | 10 | q | 2 | 1
