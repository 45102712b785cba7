-- A stream that is not known
-- given: M, M1

SELECT *
FROM M
UNION Mx

--- error at 3:7
unknown stream 'Mx'. Did you mean 'M'? Known: M, M1.
