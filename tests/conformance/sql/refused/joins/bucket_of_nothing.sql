-- Buckets of nothing
-- given: A, B

SELECT A.ts FROM A, B WHERE A.ts/0 = B.ts/0

--- error at 1:29
a time is divided into buckets of a length above zero that its column can count
