-- A word that is nearly TUMBLE
-- given: M

SELECT count(*) FROM TUMBEL(M, DESCRIPTOR(ts), 1 minute)

--- error at 1:22
cannot read this: the functions that stand in FROM are TUMBLE, HOP, SESSION. Did you mean TUMBLE?
