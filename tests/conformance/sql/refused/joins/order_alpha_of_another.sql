-- ALPHA is for ADAPTIVE
-- given: A, B

SELECT A.srcIP FROM A, B WHERE A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - 2 AND A.ts + 2
ORDER BY GREATEST(A.ts, B.ts) USING SYNC-FILTER ALPHA 0.2

--- error at 2:37
alpha= goes with order='adaptive', and this is 'sync-filter'
