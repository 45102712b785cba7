-- A text that does not end
-- given: M

SELECT ts FROM M WHERE flag = 'SYN

--- error at 1:31
cannot read this: ' is not closed
