-- A parameter of a kind that is none
-- given: M, n = [1]

SELECT ts FROM M WHERE len = :n

--- error at 1:30
a parameter is a number, a text, a truth value, a time or a length of time, not list
