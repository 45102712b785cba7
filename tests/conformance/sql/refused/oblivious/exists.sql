-- EXISTS over streams that promise nothing
-- given: Wild1, Wild2

SELECT * FROM Wild1 a WHERE EXISTS (SELECT 1 FROM Wild2 b WHERE a.epoch = b.epoch)

--- error at 1:51
a semi join could never forget a row: nothing is promised about 'epoch' of stream 'Wild1'. ...
