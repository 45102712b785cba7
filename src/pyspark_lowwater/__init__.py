"""What Spark finds when it looks for data sources in Python's path: none, but the process that
looks is put away a minute later, and would end with a traceback nobody needs.
"""

from lowwater.engines.spark.worker.task import end_quietly

end_quietly()
