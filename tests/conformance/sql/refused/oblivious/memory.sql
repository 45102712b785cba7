-- An amount of memory that is none
-- given: Wild1, Wild2

SELECT * FROM Wild1 a, Wild2 b [MEMORY '64 megs'] WHERE a.epoch = b.epoch

--- error at 1:40
MEMORY '64 megs' is not an amount of memory; write a number and a unit, ...
