-- Inner joins are made in an order in which each is bounded: the third source ties the first two
-- given: M1, M2, B

SELECT M1.ts, M2.len, B.len FROM M1, M2, B
WHERE M1.ts = B.ts AND M2.ts BETWEEN B.ts - 1 AND B.ts AND M1.srcIP = M2.srcIP

--- oracle
SELECT M1.ts AS ts, M2.len AS M2_len, B.len AS B_len FROM M1, M2, B
WHERE M1.ts = B.ts AND M2.ts BETWEEN B.ts - INTERVAL 1 SECOND AND B.ts AND M1.srcIP = M2.srcIP
