-- UNION of queries drops what comes twice
-- given: A, B

SELECT ts, srcIP FROM A UNION SELECT ts, srcIP FROM B

--- oracle
SELECT ts AS ts, srcIP AS srcIP FROM A UNION SELECT ts, srcIP FROM B
