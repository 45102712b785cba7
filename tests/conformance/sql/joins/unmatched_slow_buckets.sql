-- A tumbling-window join bounds rows without a partner in windows
-- given: A, B

SELECT a.ts, b.ts FROM A a FULL JOIN B b
ON a.srcIP = b.srcIP AND a.ts/10 = b.ts/10 [UNMATCHED SLOW WITHIN 1 WINDOW]

--- oracle
SELECT a.ts AS a_ts, b.ts AS b_ts FROM A a FULL JOIN B b
ON a.srcIP = b.srcIP AND bucket(a.ts, 10) = bucket(b.ts, 10)
