-- Results in the order of their times, under the name the query gives them
-- given: A, B
-- in order of: at

SELECT A.srcIP, GREATEST(A.ts, B.ts) AS at, A.len + B.len AS both
FROM A JOIN B ON A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - INTERVAL '20' SECOND AND A.ts + INTERVAL '9' SECOND
ORDER BY at

--- oracle
SELECT A.srcIP AS srcIP, greatest(A.ts, B.ts) AS at, A.len + B.len AS "both"
FROM A JOIN B ON A.srcIP = B.srcIP AND B.ts BETWEEN A.ts - INTERVAL 20 SECOND AND A.ts + INTERVAL 9 SECOND
