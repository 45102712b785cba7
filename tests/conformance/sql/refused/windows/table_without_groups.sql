-- A table spreads groups
-- given: M

SELECT count(*) AS n FROM M [RANGE 1 minute, TABLE 100]

--- error at 1:29
table= spreads groups over slots; ...
