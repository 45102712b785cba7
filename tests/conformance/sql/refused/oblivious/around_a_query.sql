-- A clause of joins after a query in parentheses
-- given: Wild1, Wild2

(SELECT * FROM Wild1 a, Wild2 b WHERE a.epoch = b.epoch) [STRATEGY msf]

--- error at 1:58
a clause of joins goes with one SELECT that joins
