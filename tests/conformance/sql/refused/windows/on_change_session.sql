-- A session does not slide
-- given: M

SELECT count(*) FROM M [SESSION 1 minute, SLIDE ON CHANGE]

--- error at 1:24
a SESSION window has neither RANGE nor SLIDE nor PARTITION BY: it ends when rows stay away
