-- An aggregate that is not there
-- given: M

SELECT median(len) FROM M [RANGE 1 min]

--- error at 1:8
unknown aggregate 'median'. Did you mean 'min'? Known: approx_count_distinct, approx_quantile,
avg, collect, count, first, last, max, min, stddev, sum.
