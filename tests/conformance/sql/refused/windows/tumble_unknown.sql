-- TUMBLE over a stream that is not there
-- given: M

SELECT count(*) FROM TUMBLE(TABLE Mx, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

--- error at 1:35
unknown stream 'Mx'. Did you mean 'M'? Known: M.
