-- A union of whole seconds and timestamps
-- given: A

SELECT ts FROM S UNION ALL SELECT ts FROM A

--- stream S
ts | k
1 | 2

--- error at 1:8
union needs streams with the same columns: (ts Int64) against (ts Datetime(time_unit='us',
time_zone=None)). Bring them together: time columns of one type where the streams are declared
