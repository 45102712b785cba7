-- A function that is not known
-- given: M

SELECT ts, frobnicate(len) FROM M

--- error at 1:12
unknown function 'frobnicate'.
