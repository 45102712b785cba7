-- A union of different columns
-- given: A, Ticks

SELECT ts, srcIP FROM A UNION ALL SELECT ts, symbol, price FROM Ticks

--- error at 1:8
union needs streams with the same columns: (ts Datetime(time_unit='us', time_zone=None), srcIP
String) against (ts Datetime(time_unit='us', time_zone=None), symbol String, price Float64)
