-- Groups by buckets of time: ts/60 is the number of the minute
-- given: M

SELECT ts/60 AS minute, srcIP, count(*) AS n FROM M GROUP BY ts/60, srcIP

--- oracle
SELECT bucket(ts, 60) AS minute, srcIP AS srcIP, count(*) AS n FROM M GROUP BY ALL
