-- Another statement
-- given: M

UPDATE M SET len = 3

--- error at 1:1
a statement begins with SELECT, WITH, CREATE, INSERT or SET.
