-- CASE without END
-- given: M

SELECT CASE WHEN len > 3 THEN 1 FROM M

--- error at 1:31
cannot read this: expected END after CASE
