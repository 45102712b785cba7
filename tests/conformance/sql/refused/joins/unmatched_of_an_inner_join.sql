-- An inner join has no rows without a partner
-- given: A, B

SELECT a.ts FROM A a JOIN B b ON a.srcIP = b.srcIP AND abs(a.ts - b.ts) <= 3 [UNMATCHED SLOW]

--- error at 1:89
UNMATCHED is the pace of rows without a partner; only outer and anti joins and NOT EXISTS emit such rows
