-- Parts of times, times that are shifted and cut
-- given: Mixed

SELECT id, EXTRACT(HOUR FROM ts) * 1000 AS a, EXTRACT(YEAR FROM day) AS b, date_part('minute', seen) AS c,
       year(seen) AS d, ts + INTERVAL '5' SECOND AS e, ts - INTERVAL 2 MINUTE AS f,
       seen + INTERVAL '1 hour' AS g, date_trunc('hour', ts) AS h, date_trunc('day', seen) AS i,
       strftime(ts, '%H:%M:%S') AS j, CAST(seen AS DATE) = day AS k, ts + 30 AS l, ts - 1.5 AS m
FROM Mixed

--- oracle
SELECT id AS id, EXTRACT(HOUR FROM ts) * 1000 AS a, EXTRACT(YEAR FROM day) AS b, date_part('minute', seen) AS c,
       year(seen) AS d, ts + INTERVAL '5' SECOND AS e, ts - INTERVAL 2 MINUTE AS f,
       seen + INTERVAL '1 hour' AS g, date_trunc('hour', ts) AS h, date_trunc('day', seen) AS i,
       strftime(ts, '%H:%M:%S') AS j, CAST(seen AS DATE) = day AS k,
       ts + INTERVAL 30 SECOND AS l, ts - INTERVAL 1500 MILLISECOND AS m
FROM Mixed
