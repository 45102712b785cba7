-- A word that is nearly count
-- given: M

SELECT cuont(*) FROM M [RANGE 1 minute]

--- error at 1:8
unknown function 'cuont'. Did you mean 'count'?
