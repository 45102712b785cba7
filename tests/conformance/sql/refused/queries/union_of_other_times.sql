-- A union of streams that promise different times

SELECT ts, sent FROM S UNION ALL SELECT ts, sent FROM T

--- stream S
ts | sent
1 | 2

--- stream T
sent | ts
1 | 2

--- error at 1:8
union: the streams progress on different columns or count time in different units, so nothing could
be promised of all rows: stream 'S' promises ts in s; stream 'T' promises sent in s. Bring them
together: SELECT ..., sent AS ts
