-- SESSION and RANGE
-- given: M

SELECT count(*) FROM M [SESSION 5 seconds, RANGE 1 minute]

--- error at 1:24
a SESSION window has neither RANGE nor SLIDE nor PARTITION BY: it ends when rows stay away
