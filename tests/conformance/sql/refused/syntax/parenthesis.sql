-- A parenthesis is missing
-- given: M

SELECT count(* FROM M [RANGE 1 min]

--- error at 1:16
cannot read this: expecting )
