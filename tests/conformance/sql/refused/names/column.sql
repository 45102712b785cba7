-- A column that is not there, with the nearest one
-- given: M

SELECT srcIPP FROM M

--- error at 1:8
unknown column 'srcIPP'. Did you mean 'srcIP'? Known: destIP, destPort, flag, len, srcIP, srcPort,
ts.
