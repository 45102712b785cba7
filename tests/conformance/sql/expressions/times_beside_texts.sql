-- A text beside a time is a time
-- given: Mixed

SELECT id, ts FROM Mixed
WHERE ts >= '2024-02-29 23:55:10' AND '2024-02-29 23:56:00' > ts
  AND (day = '2024-02-29' OR day IN ('1969-12-31') OR seen BETWEEN '2024-01-01' AND '2024-12-31')

--- oracle
SELECT id AS id, ts AS ts FROM Mixed
WHERE ts >= '2024-02-29 23:55:10' AND '2024-02-29 23:56:00' > ts
  AND (day = '2024-02-29' OR day IN ('1969-12-31') OR seen BETWEEN '2024-01-01' AND '2024-12-31')
