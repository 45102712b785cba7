-- A part of a row
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [READ_AHEAD 1.5 ROWS] WHERE a.epoch = b.epoch

--- error at 1:44
READ_AHEAD takes a whole number of rows, such as 512 ROWS
