-- A right join
-- given: A, B

SELECT a.len, b.ts, b.srcIP FROM A a RIGHT JOIN B b ON a.ts = b.ts AND a.srcIP = b.srcIP
WHERE b.flag = 'SYN'

--- oracle
SELECT a.len AS len, b.ts AS ts, b.srcIP AS srcIP FROM A a RIGHT JOIN B b
ON a.ts = b.ts AND a.srcIP = b.srcIP WHERE b.flag = 'SYN'
