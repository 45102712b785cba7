-- WHERE comes before the select list gives names
-- given: M

SELECT len * 2 AS twice, ts FROM M WHERE twice > 5

--- error at 1:42
unknown column 'twice'. Known: destIP, destPort, flag, len, srcIP, srcPort, ts.
