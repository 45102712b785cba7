-- A stream and a query united in FROM
-- given: A, B

SELECT U.ts, U.len FROM (SELECT * FROM B WHERE flag = 'SYN') UNION A AS U WHERE U.len > 500

--- oracle
SELECT ts AS ts, len AS len FROM (FROM A UNION ALL SELECT * FROM B WHERE flag = 'SYN') WHERE len > 500
