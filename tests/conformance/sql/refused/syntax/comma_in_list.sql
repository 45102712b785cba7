-- A comma at the end of a list
-- given: M

SELECT ts FROM M WHERE len IN (1, 2,)

--- error at 1:36
cannot read this: something is missing after the comma
