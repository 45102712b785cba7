-- A source that is not in FROM
-- given: M

SELECT N.len FROM M

--- error at 1:8
unknown source 'N'. Known: M.
