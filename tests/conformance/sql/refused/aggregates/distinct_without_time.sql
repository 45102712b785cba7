-- DISTINCT that could never forget
-- given: M

SELECT DISTINCT srcIP FROM M

--- error at 1:8
distinct would have to remember every row for ever: none of (srcIP) is a progressing attribute
(here: none)
