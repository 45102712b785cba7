-- A comment only
-- given: M

-- nothing here

--- error at 1:1
there is no query in this text
