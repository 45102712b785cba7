-- The same with the union in FROM
-- given: Main1, Control

SELECT ts, len FROM Main1 UNION Control WHERE len > 75

--- oracle
SELECT ts AS ts, len AS len FROM (FROM Main1 UNION ALL FROM Control) WHERE len > 75
