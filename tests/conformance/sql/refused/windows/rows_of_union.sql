-- A window of rows over a union
-- given: M1, M2

SELECT count(*) FROM M1 UNION M2 [RANGE 10 ROWS]

--- error at 1:34
a window of rows counts the rows of one source, as they came in; it cannot be put over a union, a
join or an aggregate, whose rows have no such order. The rows of a key can be counted there, in order of
time: add PARTITION BY
