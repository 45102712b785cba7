-- Finer than the column counts
-- given: Steps

SELECT count(*) FROM Steps [RANGE 1 ms]

--- error at 1:28
a window of 1 ms is finer than the time column, which counts in 1 s; use a multiple of that
