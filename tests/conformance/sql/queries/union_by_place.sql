-- A union of queries takes columns by their places; the first names them
-- given: M1, M2

SELECT ts, srcIP AS address, len AS size FROM M1 UNION ALL SELECT ts, destIP, len AS length FROM M2

--- oracle
SELECT ts, srcIP AS address, len AS size FROM M1 UNION ALL SELECT ts, destIP, len FROM M2
