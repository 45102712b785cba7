-- Dice
-- given: M

SELECT ts, random() AS x FROM M

--- error at 1:12
RAND() reads a clock or a random number, so a run could not be repeated; lw.stream(...,
stamp="internal") stamps rows as they come in
