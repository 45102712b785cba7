-- A function that is nearly known
-- given: M

SELECT ts, lenght(srcIP) AS n FROM M

--- error at 1:12
unknown function 'lenght'. Did you mean 'length'?
