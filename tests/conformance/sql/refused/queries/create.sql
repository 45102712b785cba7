-- CREATE STREAM belongs into a pipeline file
-- given: M

CREATE STREAM x FROM 'csv:x.csv' PROGRESS ORDERED BY ts

--- error at 1:15
CREATE and INSERT go into a pipeline file, for the command lowwater run
