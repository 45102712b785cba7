-- The number of a bucket in a list and in a condition
-- given: Mixed

SELECT ts, ts/10 AS tens, seen/3600 AS hours FROM Mixed WHERE ts/10 <> 170925090

--- oracle
SELECT ts AS ts, bucket(ts, 10) AS tens, bucket(seen, 3600) AS hours FROM Mixed
WHERE bucket(ts, 10) <> 170925090
