-- CAST without a type
-- given: M

SELECT CAST(len AS) FROM M

--- error at 1:19
cannot read this: expected TYPE after CAST
