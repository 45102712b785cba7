-- An aggregate never ends without a window; the latest price is a row of an update stream
-- given: Ticks

SELECT symbol, last(price) FROM Ticks GROUP BY symbol

--- error at 1:48
this aggregate could never answer: no group is ever complete, because none of (symbol) is a progressing attribute (here: ts). Put a window after the source, [RANGE 1 minute, SLIDE 1 minute, WA ts], or group by a progressing attribute too
