-- HOP with one length
-- given: M

SELECT count(*) FROM HOP(TABLE M, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

--- error at 1:70
cannot read this: HOP takes 2 lengths of time
