-- A column that its source does not have
-- given: A, B

SELECT A.ts, B.lenn FROM A, B WHERE A.ts = B.ts

--- error at 1:16
unknown column of B 'lenn'. Did you mean 'len'? Known: destIP, destPort, flag, len, srcIP,
srcPort, ts.
