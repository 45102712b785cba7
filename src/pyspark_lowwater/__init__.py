"""A package without data sources, which Spark imports when it looks for some in Python's path.

Spark ends the process that looks a minute later, and it would then print a traceback. Importing
this package prevents that.
"""

from lowwater.engines.spark.worker.task import end_quietly

end_quietly()
