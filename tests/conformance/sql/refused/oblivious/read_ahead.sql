-- Rows to read ahead with a strategy that puts none on disk
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [STRATEGY msf, READ_AHEAD 100 ROWS] WHERE a.epoch = b.epoch

--- error at 1:58
READ_AHEAD is about rows on disk, and strategy 'msf' puts none there; ...
