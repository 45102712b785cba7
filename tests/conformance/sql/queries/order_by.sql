-- ORDER BY the progressing attribute: an ordered stream
-- given: M
-- in order of: ts

SELECT srcIP, ts, len FROM M WHERE len > 75 ORDER BY ts ASC

--- oracle
SELECT srcIP AS srcIP, ts AS ts, len AS len FROM M WHERE len > 75
