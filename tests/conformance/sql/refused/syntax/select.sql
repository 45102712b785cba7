-- A word misspelt
-- given: M

SELEC * FROM M

--- error at 1:1
a statement begins with SELECT, WITH, CREATE, INSERT or SET. Did you mean SELECT?
