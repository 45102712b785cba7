-- No stream is near
-- given: M

SELECT * FROM packets

--- error at 1:15
unknown stream 'packets'. Known: M.
