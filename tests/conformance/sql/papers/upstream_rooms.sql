-- The average of the latest five minutes per room, every minute (UpStream §2)
-- given: Rooms

SELECT room, avg(temperature) AS mean
FROM Rooms [RANGE 5 minutes, SLIDE 1 minute, WA ts]
GROUP BY room

--- oracle
SELECT window_start, window_start + INTERVAL 5 MINUTE AS window_end, room AS room,
       avg(temperature) AS mean
FROM (SELECT unnest(starts(ts, 300, 60)) AS window_start, * FROM Rooms)
GROUP BY window_start, room
