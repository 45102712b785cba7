-- The trailing WINDOW of a join slides on change, which has not every aggregate
-- given: A, B

SELECT stddev(A.len) FROM A, B WHERE A.srcIP = B.srcIP WINDOW 10 minutes

--- error at 1:8
a window that slides on change has no stddev; it has ...
