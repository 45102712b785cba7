-- A part a clause of joins does not have
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [MEMORY '1 MB', STRATEGI msf] WHERE a.epoch = b.epoch

--- error at 1:48
cannot read this: a join clause has the parts MEMORY, STRATEGY, ACCURACY, LATENCY, READ_AHEAD and UNMATCHED. Did you mean STRATEGY?
