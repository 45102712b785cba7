-- A function that was given no name is called as it was written
-- given: Rooms

SELECT date_trunc('hour', ts), avg(temperature) FROM Rooms GROUP BY date_trunc('hour', ts)

--- oracle
SELECT date_trunc('hour', ts) AS date_trunc, avg(temperature) AS avg FROM Rooms GROUP BY ALL
