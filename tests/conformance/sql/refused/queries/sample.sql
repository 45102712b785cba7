-- TABLESAMPLE
-- given: M

SELECT * FROM M TABLESAMPLE (10 PERCENT)

--- error at 1:30
TABLESAMPLE is not part of the language
