-- A column that both sources have
-- given: A, B

SELECT len FROM A, B WHERE A.ts = B.ts

--- error at 1:8
'len' is a column of several sources; say A.len or B.len
