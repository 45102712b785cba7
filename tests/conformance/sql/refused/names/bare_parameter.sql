-- A bare name that is neither column nor parameter
-- given: M1, M2

SELECT * FROM M1, M2
WHERE M1.ts >= M2.ts - n AND M1.ts <= M2.ts + n

--- error at 2:24
unknown column 'n'. Known: destIP, destPort, flag, len, srcIP, srcPort, ts.
