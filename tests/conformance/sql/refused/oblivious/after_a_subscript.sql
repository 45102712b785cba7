-- A clause of joins after another bracket does not hang
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b WHERE a.epoch = b.epoch AND a.x[1] [MEMORY 5]

--- error at 1:67
cannot read this: a clause of joins is that of all joins of the query: ...
