-- ON is true or false
-- given: A, B

SELECT A.ts FROM A JOIN B ON A.ts = B.ts AND A.len + B.len

--- error at 1:46
a condition must be true or false; this is Int64
