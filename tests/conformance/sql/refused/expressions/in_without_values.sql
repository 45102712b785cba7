-- IN without values
-- given: A

SELECT ts FROM A WHERE len IN ()

--- error at 1:24
something is missing after IN
