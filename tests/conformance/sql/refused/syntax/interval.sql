-- INTERVAL without a length
-- given: M

SELECT ts + INTERVAL FROM M

--- error at 1:13
unknown column 'INTERVAL'. Known: destIP, destPort, flag, len, srcIP, srcPort, ts.
