-- A number compared with a text
-- given: M

SELECT ts FROM M WHERE len = 'long'

--- error at 1:24
BIGINT and VARCHAR do not go together; CAST one of them
