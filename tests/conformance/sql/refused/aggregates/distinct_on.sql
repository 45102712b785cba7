-- DISTINCT ON
-- given: M

SELECT DISTINCT ON (srcIP) ts, srcIP FROM M

--- error at 1:21
DISTINCT ON is not part of the language; use first(...) in an aggregate
