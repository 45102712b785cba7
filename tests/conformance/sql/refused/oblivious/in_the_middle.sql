-- A clause of joins before the last source
-- given: Wild1, Wild2, Wild3

SELECT * FROM Wild1 a JOIN Wild2 b ON a.epoch = b.epoch [MEMORY 5] JOIN Wild3 c ON a.epoch = b.epoch

--- error at 1:57
cannot read this: a clause of joins is that of all joins of the query: ...
