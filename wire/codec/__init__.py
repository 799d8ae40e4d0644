"""Records to protobuf messages and back, one module a subject.

`write_x(record, out)` fills an empty message, `read_x(proto)` makes the record; filling in place costs a quarter of
building nested messages and copying them. What a message leaves out reads as Hadoop reads it: a number as 0 or the
default of its field. A message that is not a valid record raises InvalidArgumentException, which names the field.
"""
