"""What the document refuses, fills in and keeps unique, resource by resource: one `Rules` value for each collection.

`rule` is the vocabulary, `RULES` in `every` the whole list. A rule sees neutral names, decides about one request inside
its transaction, and does no I/O of its own. Limits of single fields are part of the shapes, in `edge_operator.api`.
"""
