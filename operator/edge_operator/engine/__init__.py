"""Decides. Pure functions from values to values: nothing here awaits, reads a clock, opens a socket or draws lots.

`references` finds what a spec points at, `project` turns a spec into a request body, `compare` says what differs,
`digests` remember what was sent without storing it, `marker` says whose an object is, `state` holds what is wanted,
recorded and seen, `plan` and `issue` list the operations, `order` puts those of a change in order, `ssh` judges
certificates, `conditions` say how things stand in the words of `reasons`, and `reported` is what a status shows of the
remote object.
"""
