-- WA names a column that is not there
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, WA tz]

--- error at 1:44
unknown column 'tz'. Known: destIP, destPort, flag, len, srcIP, srcPort, ts.
