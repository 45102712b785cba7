-- TUMBLE without a length
-- given: M

SELECT count(*) FROM TUMBLE(TABLE M, DESCRIPTOR(ts))

--- error at 1:52
cannot read this: a length is missing, for example 5 minutes
