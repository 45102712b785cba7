-- FROM misspelt
-- given: M

SELECT * FORM M

--- error at 1:10
cannot read this: 'FORM'. Did you mean FROM?
