-- A stream has a simple name
-- given: M

SELECT * FROM net.M

--- error at 1:15
a stream has a simple name
