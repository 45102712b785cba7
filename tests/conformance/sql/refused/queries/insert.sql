-- INSERT INTO belongs into a pipeline file
-- given: M

INSERT INTO 'csv:x.csv' SELECT * FROM M

--- error at 1:13
CREATE and INSERT go into a pipeline file, for the command lowwater run
