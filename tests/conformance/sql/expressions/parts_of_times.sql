-- Parts of a time are whole numbers
-- given: Mixed

SELECT id, ts, extract(millisecond FROM seen) AS a, extract(microsecond FROM seen) AS b,
       date_part('hour', seen) AS c, date_part('millisecond', seen) AS d, extract(second FROM seen) AS e
FROM Mixed

--- oracle
SELECT id AS id, ts AS ts, extract(millisecond FROM seen) AS a, extract(microsecond FROM seen) AS b,
       date_part('hour', seen) AS c, date_part('millisecond', seen) AS d, extract(second FROM seen) AS e
FROM Mixed
