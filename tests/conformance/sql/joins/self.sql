-- A stream with itself
-- given: Steps

SELECT x.ts, x.v, y.v AS later FROM Steps x JOIN Steps y ON y.ts = x.ts + 1 AND x.k = y.k

--- oracle
SELECT x.ts AS ts, x.v AS v, y.v AS later FROM Steps x JOIN Steps y ON y.ts = x.ts + 1 AND x.k = y.k
