-- A text is cast to a time by itself, whatever the others look like

SELECT ts, TRY_CAST(substr(s, 2) AS DATE) AS a, TRY_CAST(substr(s, 2) AS TIMESTAMP) AS b
FROM K

--- stream K
ts | s
1 | =2024-02-29
2 | =2023-02-29
3 | =2024-01-31T10:20:30.25
4 | =2024-04-31 00:00:00
5 | =1900-02-29
6 | =2000-02-29 23:59:59.999999
7 | null
8 | =yesterday
9 | =2024-13-01
10 | =2024-01-01 24:01:00

--- oracle
SELECT ts AS ts, TRY_CAST(substr(s, 2) AS DATE) AS a, TRY_CAST(substr(s, 2) AS TIMESTAMP) AS b
FROM K
