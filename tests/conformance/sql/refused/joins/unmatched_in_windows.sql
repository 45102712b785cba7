-- A band join has no windows in which a bound could be counted
-- given: A, B

SELECT a.ts FROM A a LEFT JOIN B b ON a.srcIP = b.srcIP AND abs(a.ts - b.ts) <= 3 [UNMATCHED SLOW]

--- error at 1:94
UNMATCHED: this join has no windows to count in; give the bound as a length of time: SLOW EVERY 160 ROWS WITHIN 1 MINUTE
