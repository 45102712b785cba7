-- count of two columns
-- given: M

SELECT count(len, flag) FROM M [RANGE 1 min]

--- error at 1:8
count takes one argument
