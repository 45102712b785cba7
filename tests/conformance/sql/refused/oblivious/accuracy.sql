-- More than all results
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [ACCURACY 1.2] WHERE a.epoch = b.epoch

--- error at 1:42
ACCURACY takes a share between 0 and 1, such as 0.999, or the same as 99.9 %
