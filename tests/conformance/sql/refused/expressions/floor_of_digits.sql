-- An argument too many
-- given: M

SELECT ts, floor(len / 3, 1) AS x FROM M

--- error at 1:18
floor takes 1 argument, and no decimals
