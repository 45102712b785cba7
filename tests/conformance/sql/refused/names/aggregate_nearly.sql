-- An aggregate that is nearly known, beside one that is
-- given: M

SELECT count(*) AS n, avgg(len) AS mean FROM M [RANGE 1 minute]

--- error at 1:23
unknown function 'avgg'. Did you mean 'avg'?
