-- A text that is not closed before its line ends
-- given: M

SELECT ts, 'oops AS x
FROM M WHERE flag = 'SYN'

--- error at 1:12
cannot read this: ' is not closed
