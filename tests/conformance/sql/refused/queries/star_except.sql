-- * with EXCEPT
-- given: M

SELECT * EXCEPT (len) FROM M

--- error at 1:8
* takes no EXCEPT, REPLACE or RENAME here; list the columns
