-- A clause of joins that does not end
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [MEMORY 5 WHERE a.epoch = b.epoch

--- error at 1:42
cannot read this: the join clause is not closed: a comma or ] is missing
