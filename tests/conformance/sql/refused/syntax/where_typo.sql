-- A word that is nearly WHERE
-- given: M

SELECT ts FROM M WERE len > 3

--- error at 1:18
cannot read this: 'WERE'. Did you mean WHERE?
