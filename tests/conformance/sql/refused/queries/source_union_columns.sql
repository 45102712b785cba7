-- A union of streams with different columns
-- given: A, Ticks

SELECT count(*) FROM A UNION Ticks [RANGE 1 minute]

--- error at 1:22
union needs streams with the same columns: (srcIP String, srcPort Int64, destIP String, destPort
Int64, len Int64, flag String, ts Datetime(time_unit='us', time_zone=None)) against (symbol
String, price Float64, volume Int32, ts Datetime(time_unit='us', time_zone=None))
