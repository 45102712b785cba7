-- Partners per row: groups by one time of a join
-- given: A, B

SELECT B.ts, B.srcIP, count(*) AS partners FROM A JOIN B ON A.srcIP = B.srcIP
AND abs(A.ts - B.ts) <= 10 GROUP BY B.ts, B.srcIP

--- oracle
SELECT B.ts AS ts, B.srcIP AS srcIP, count(*) AS partners FROM A JOIN B ON A.srcIP = B.srcIP
AND A.ts BETWEEN B.ts - INTERVAL 10 SECOND AND B.ts + INTERVAL 10 SECOND GROUP BY B.ts, B.srcIP
