-- ORDER BY an expression
-- given: M

SELECT ts, len FROM M ORDER BY ts + 5

--- error at 1:32
ORDER BY names a progressing attribute of the result, or greatest(...) of the times ...
