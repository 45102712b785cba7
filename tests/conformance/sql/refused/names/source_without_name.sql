-- A query in a join needs a name
-- given: A, B

SELECT * FROM A, (SELECT * FROM B) WHERE A.ts = A.ts

--- error at 1:26
in a join every source has a name; give this one with AS
