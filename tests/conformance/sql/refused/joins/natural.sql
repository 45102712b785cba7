-- NATURAL JOIN
-- given: A, B

SELECT * FROM A NATURAL JOIN B

--- error at 1:30
NATURAL JOIN: say with ON what is equal, and bound the times
