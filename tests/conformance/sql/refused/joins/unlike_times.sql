-- Times that do not count alike
-- given: M, Steps

SELECT M.ts FROM M, Steps s WHERE M.ts = s.ts

--- error at 1:21
this join could never forget a row: M.ts and s.ts do not count time alike, so they cannot be compared; give both streams times of one type and unit
