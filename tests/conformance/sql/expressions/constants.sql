-- Constants alone
-- given: Steps

SELECT ts, 1 AS one, 'x' AS letter, TRUE AS yes, NULL AS nothing, 1.5 * 2 AS three, 2 + 3 * 4 AS n FROM Steps

--- oracle
SELECT ts AS ts, 1 AS one, 'x' AS letter, TRUE AS yes, NULL AS nothing, 1.5 * 2 AS three, 2 + 3 * 4 AS n FROM Steps
