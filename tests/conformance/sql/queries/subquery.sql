-- A query in FROM, with and without a name
-- given: M

SELECT s.ip, s.double FROM (SELECT srcIP AS ip, len * 2 AS double FROM (SELECT * FROM M WHERE len > 75)) s
WHERE s.double < 2000

--- oracle
SELECT srcIP AS ip, len * 2 AS double FROM M WHERE len > 75 AND len * 2 < 2000
