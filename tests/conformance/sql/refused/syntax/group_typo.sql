-- A word that is nearly GROUP
-- given: M

SELECT srcIP, count(*) FROM M [RANGE 1 minute] GRUOP BY srcIP

--- error at 1:48
cannot read this: 'GRUOP'. Did you mean GROUP?
