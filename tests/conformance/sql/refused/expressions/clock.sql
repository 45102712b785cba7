-- The clock
-- given: M

SELECT ts FROM M WHERE ts > now()

--- error at 1:29
NOW() reads a clock or a random number, so a run could not be repeated; lw.stream(...,
stamp="internal") stamps rows as they come in
