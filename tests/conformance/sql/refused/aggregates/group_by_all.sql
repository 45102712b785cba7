-- GROUP BY ALL
-- given: M

SELECT ts, count(*) FROM M GROUP BY ALL

--- error at 1:28
GROUP BY lists columns or expressions; grouping sets are several queries
