-- WITH without a query
-- given: M

WITH x AS (SELECT ts FROM M)

--- error at 1:28
cannot read this: failed to parse any statement following CTE
