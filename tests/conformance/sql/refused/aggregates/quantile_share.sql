-- A quantile above one
-- given: M

SELECT approx_quantile(len, 50) FROM M [RANGE 1 min]

--- error at 1:8
approx_quantile takes a value and a share from 0 to 1, such as 0.5
