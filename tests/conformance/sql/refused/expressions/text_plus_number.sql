-- A text and a number
-- given: M

SELECT ts, srcIP + 1 AS x FROM M

--- error at 1:12
cannot use this expression: arithmetic on dtypes str and dyn int is not allowed (lhs: column
'srcIP', rhs: expression `dyn int: 1`); try an explicit cast first
