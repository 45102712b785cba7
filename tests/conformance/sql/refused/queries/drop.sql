-- DROP
-- given: M

DROP TABLE M

--- error at 1:1
a statement begins with SELECT, WITH, CREATE, INSERT or SET.
