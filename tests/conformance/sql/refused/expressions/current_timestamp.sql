-- The clock by its other name
-- given: M

SELECT ts, CURRENT_TIMESTAMP FROM M

--- error at 1:12
CURRENT_TIMESTAMP() reads a clock or a random number, so a run could not be repeated; lw.stream(...,
stamp="internal") stamps rows as they come in
