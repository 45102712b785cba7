-- The order of a join that goes by promises
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b WHERE a.epoch = b.epoch
ORDER BY greatest(a.epoch, b.epoch)

--- error at 2:10
results in order of their times need promises, and this join measures its inputs: ...
