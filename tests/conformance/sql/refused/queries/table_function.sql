-- A function as a source
-- given: M

SELECT * FROM generate_series(1, 5)

--- error at 1:15
cannot read this: the functions that stand in FROM are TUMBLE, HOP, SESSION.
