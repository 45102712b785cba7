-- USING a column only one side has
-- given: Ticks, Rooms

SELECT * FROM Ticks JOIN Rooms USING (symbol)

--- error at 1:39
USING (symbol): both sides must have this column
