-- ORDER BY the name the attribute was given
-- given: M
-- in order of: moment

SELECT ts AS moment, len FROM M ORDER BY moment

--- oracle
SELECT ts AS moment, len AS len FROM M
