"""``python -m lowwater`` is the command ``lowwater``."""

from lowwater.cli import main

main()
