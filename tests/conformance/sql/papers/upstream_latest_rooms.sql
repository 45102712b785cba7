-- The temperature of rooms, averaged over five minutes (UpStream §2), as an update stream
-- given: Temps

SELECT room, avg(temperature) AS mean
FROM Temps [RANGE 5 minutes, SLIDE 5 minutes, WA ts]
GROUP BY room

--- oracle
SELECT window_start, window_start + INTERVAL 5 MINUTE AS window_end, room AS room,
       avg(temperature) AS mean
FROM (SELECT unnest(starts(ts, 300, 300)) AS window_start, * FROM Temps)
GROUP BY window_start, room
