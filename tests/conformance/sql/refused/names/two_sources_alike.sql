-- Two sources of one name
-- given: A

SELECT * FROM A, A WHERE A.ts = A.ts

--- error at 1:18
two sources are called 'A'; give one another name with AS
