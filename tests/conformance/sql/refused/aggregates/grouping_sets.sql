-- Grouping sets
-- given: M

SELECT ts, srcIP, count(*) FROM M GROUP BY ROLLUP (ts, srcIP)

--- error at 1:52
GROUP BY lists columns or expressions; grouping sets are several queries
