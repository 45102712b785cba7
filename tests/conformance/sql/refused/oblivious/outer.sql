-- An outer join of streams that promise nothing
-- given: Wild1, Wild2

SELECT * FROM Wild1 a LEFT JOIN Wild2 b ON a.epoch = b.epoch

--- error at 1:33
a left join could never forget a row: nothing is promised about 'epoch' of stream 'Wild1'. Promise something, ...
