-- A function that engines do not agree on
-- given: M

SELECT ts, regexp_replace(flag, 'S', 's') AS x FROM M

--- error at 1:12
unknown function 'regexp_replace'. Did you mean 'regexp_like'?
