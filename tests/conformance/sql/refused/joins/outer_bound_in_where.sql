-- The bound of an outer join belongs into ON
-- given: A, B

SELECT a.ts FROM A a LEFT JOIN B b ON a.srcIP = b.srcIP WHERE abs(a.ts - b.ts) < 5

--- error at 1:32
this join could never forget a row: nothing bounds how far apart in time matching rows may be where they are joined. WHERE comes after an outer join: put the bounds of the times into ON
