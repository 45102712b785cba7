-- Three links of a network and how much each source sends a minute, over all of them.
--
--   lowwater run examples/packets.sql
--   lowwater run examples/packets.sql --param heavy=2000 --real-time

CREATE STREAM Main1 (key BIGINT, value BIGINT, ts TIMESTAMP)
FROM 'generate:rate=200,seconds=300,keys=5,start=2024-01-01,seed=1'
PROGRESS ORDERED BY ts;

-- Rows of this link overtake each other by up to two seconds; a few come later still.
CREATE STREAM Main2 (key BIGINT, value BIGINT, ts TIMESTAMP)
FROM 'generate:rate=150,seconds=300,keys=5,start=2024-01-01,seed=2,late_share=0.01,late_by=3'
PROGRESS ORDERED BY ts WITHIN 2 SECONDS;

-- This link is often silent: a timestamp is made for it whenever the union waits.
CREATE STREAM Control (key BIGINT, value BIGINT, ts TIMESTAMP)
FROM 'generate:rate=0.5,seconds=300,keys=5,start=2024-01-01,seed=3'
PROGRESS ORDERED BY ts IDLE ON DEMAND WITHIN 1 SECOND;

CREATE VIEW Packets AS
SELECT key AS src, value AS len, ts FROM Main1 UNION Main2 UNION Control;

SELECT src, count(*) AS packets, sum(len) AS bytes
FROM Packets [RANGE 1 minute, SLIDE 1 minute, WA ts]
GROUP BY src;
