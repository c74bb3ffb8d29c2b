"""How do several processes serve as one gateway?

A parent owns the admin listener, signals, the file and the numbers of all; workers accept on one
socket that all of them hold. What happens next is decided by plan (the parent) and duty (a
worker), both pure; parent and worker are their shells.
"""
