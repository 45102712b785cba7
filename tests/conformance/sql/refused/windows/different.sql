-- Different windows in one query
-- given: M

SELECT count(*) [RANGE 1 minute], sum(len) [RANGE 2 minutes] FROM M

--- error at 1:44
a query has one window; aggregates over different windows are queries of their own
