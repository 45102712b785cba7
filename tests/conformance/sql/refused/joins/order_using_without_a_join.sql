-- USING is for the results of a join
-- given: A

SELECT srcIP, ts FROM A ORDER BY ts USING ADAPTIVE

--- error at 1:43
USING says how a join puts its results in order: ...
