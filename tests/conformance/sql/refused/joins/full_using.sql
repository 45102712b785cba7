-- FULL JOIN with USING
-- given: A, B

SELECT * FROM A FULL JOIN B USING (ts)

--- error at 1:36
FULL JOIN: use ON, and coalesce(...) of both columns
