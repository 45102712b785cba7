-- Buckets compared inside an outer join, beside a band
-- given: A, B

SELECT A.ts FROM A LEFT JOIN B ON abs(A.ts - B.ts) < 5 AND A.ts/10 < B.ts/10

--- error at 1:60
buckets of times cannot be compared inside an outer join; compute them in a sub-query
