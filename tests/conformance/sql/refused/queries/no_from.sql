-- No FROM
-- given: M

SELECT 1

--- error at 1:8
FROM is missing: a continuous query reads at least one stream
