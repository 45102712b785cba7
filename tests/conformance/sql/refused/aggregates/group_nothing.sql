-- Groups with nothing to aggregate
-- given: M

SELECT ts, srcIP FROM M GROUP BY ts, srcIP

--- error at 1:8
this query has a window or groups, but aggregates nothing; add count(*), for example, or use
SELECT DISTINCT
