-- Brackets that are no window
-- given: M

SELECT count(*) FROM M [1 minute]

--- error at 1:27
cannot read this: expected ]
