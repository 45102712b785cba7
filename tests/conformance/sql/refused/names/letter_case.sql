-- A column that is nearly known, in other letters
-- given: M

SELECT SRCIPP FROM M

--- error at 1:8
unknown column 'SRCIPP'. Did you mean 'srcIP'? Known: destIP, destPort, flag, len, srcIP, srcPort, ts.
