"""A fifth paper, which does not exist: talks about photographs of painted shapes.

Two turns a talk, several choices a turn, pages with a picture and a text to look things
up in, and a score from −1 (wrong) over 0 (declined) to 1 (right). All that is its own
stands in this folder.
"""
