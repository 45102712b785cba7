-- A part given twice
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [MEMORY 5, MEMORY 6] WHERE a.epoch = b.epoch

--- error at 1:43
cannot read this: MEMORY is given twice
