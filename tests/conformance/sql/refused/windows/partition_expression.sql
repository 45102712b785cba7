-- A key is a column
-- given: M

SELECT count(*) FROM M [PARTITION BY nix, RANGE 10 ROWS]

--- error at 1:38
unknown column 'nix'. ...
