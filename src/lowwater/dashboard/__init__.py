"""A page that shows runs while they go, and after: who holds the mark back, and what it costs.

A watcher looks at the metrics of its runs once a second, makes one plain value of them (*state*)
and keeps their numbers for an hour (*history*). The server hands both out and cannot change
anything; what was saved of a run that has ended is shown by the same page.
"""
