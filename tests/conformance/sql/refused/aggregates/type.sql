-- A sum of texts
-- given: M

SELECT sum(srcIP) FROM M [RANGE 1 min]

--- error at 1:8
SUM("srcIP"): sum needs numbers, and this is String
