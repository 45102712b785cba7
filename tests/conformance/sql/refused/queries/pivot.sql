-- PIVOT
-- given: M

SELECT * FROM M PIVOT (sum(len) FOR flag IN ('SYN', 'ACK'))

--- error at 1:24
PIVOT is not part of the language
