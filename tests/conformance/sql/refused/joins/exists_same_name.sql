-- The inner source needs a name of its own
-- given: A

SELECT ts FROM A WHERE EXISTS (SELECT 1 FROM A WHERE A.ts = A.ts)

--- error at 1:46
the source inside EXISTS needs a name of its own; give one with AS
