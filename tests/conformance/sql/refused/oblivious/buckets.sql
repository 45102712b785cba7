-- Times in one bucket, of streams that promise nothing
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b WHERE a.epoch/5 = b.epoch/5

--- error at 1:24
a join of times in one stretch could never forget a row: nothing is promised about 'epoch' of stream 'Wild1'. ...
