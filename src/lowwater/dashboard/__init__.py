"""The page shows runs while they work and afterwards.

A watcher reads the metrics of its runs once a second, makes one plain value of them (the *state*)
and keeps their numbers for an hour (the *history*). The server serves both and changes nothing. The
same page shows the saved metrics of a run that has ended.
"""
