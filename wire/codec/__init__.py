"""Turns records into protobuf messages and back; there is a module for each subject.

`write_x(record, out)` fills an empty message, `read_x(proto)` creates the record. Filling in place costs a quarter of
building nested messages and copying them.

A field that is missing in a message is read as Hadoop reads it: a number as 0 or the field's default. A message that is
not a valid record raises InvalidArgumentException, which names the field.
"""
