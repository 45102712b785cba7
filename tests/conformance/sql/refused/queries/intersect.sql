-- INTERSECT
-- given: A, B

SELECT ts FROM A INTERSECT SELECT ts FROM B

--- error at 1:8
queries are put together by UNION only
