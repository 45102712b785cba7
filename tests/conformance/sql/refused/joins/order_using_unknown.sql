-- A strategy nobody knows
-- given: A, B

SELECT A.srcIP FROM A, B WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 2 AND A.ts + 2
ORDER BY ts USING QUICK-SORT

--- error at 2:19
ORDER BY ... USING is one of SYNC-FILTER, FILTER-ORDER, ADAPTIVE, not QUICK-SORT
