-- A word that is nearly RANGE
-- given: M

SELECT count(*) FROM M [RNGE 1 minute]

--- error at 1:25
cannot read this: 'RNGE'. Did you mean RANGE?
