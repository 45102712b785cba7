-- Plain words
-- given: M

please count the packets

--- error at 1:1
a statement begins with SELECT, WITH, CREATE, INSERT or SET.
