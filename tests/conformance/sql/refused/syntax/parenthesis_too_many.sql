-- A parenthesis too many
-- given: M

SELECT count(*)) FROM M [RANGE 1 min]

--- error at 1:16
cannot read this: it does not belong here
