-- WA names a column that does not progress
-- given: M

SELECT count(*) FROM M [RANGE 1 minute, WA len]

--- error at 1:24
a window needs a progressing attribute, and 'len' is not one here (progressing: ts). A column
progresses if a stream promises it (time=, progress=) or it is computed from such as itself, plus
or minus a constant, or greatest/least/coalesce of several
