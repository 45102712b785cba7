-- UNION ALL of three queries
-- given: A, B, C

SELECT ts, srcIP FROM A WHERE len > 75 UNION ALL SELECT ts, destIP AS srcIP FROM B
UNION ALL SELECT ts, srcIP FROM C

--- oracle
SELECT ts AS ts, srcIP AS srcIP FROM A WHERE len > 75 UNION ALL SELECT ts, destIP FROM B
UNION ALL SELECT ts, srcIP FROM C
