-- Values side by side
-- given: M

SELECT ts FROM M WHERE (len, ts) = (1, ts)

--- error at 1:25
cannot use this expression: it is not part of the language
