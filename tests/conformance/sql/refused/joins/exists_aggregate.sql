-- EXISTS over an aggregate
-- given: A, B

SELECT ts FROM A WHERE EXISTS (SELECT count(*) FROM B WHERE B.ts = A.ts GROUP BY B.srcIP)

--- error at 1:39
EXISTS takes a plain query, SELECT ... FROM one source WHERE ...
