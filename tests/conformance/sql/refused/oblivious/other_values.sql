-- Streams that promise nothing, joined on other values
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b WHERE a.val = b.val

--- error at 1:24
this join could never forget a row: nothing bounds how far apart in time matching rows may be. Nothing is promised about times here: make them equal, a.epoch = b.epoch, or bound them, abs(a.epoch - b.epoch) <= 60
