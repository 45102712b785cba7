-- A function of texts over a number
-- given: M

SELECT ts, upper(len) AS x FROM M

--- error at 1:18
upper takes a text here, and this is BIGINT
