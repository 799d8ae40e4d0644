"""Warnings about values in templates that stop the queues which are created with them, or do nothing.

A child is read with each template as if it had just been created, and the rules of `mistakes` are applied to it; a
warning names the key of the template instead of the child's.
"""

from __future__ import annotations

from collections.abc import Iterator

from rm.scheduler.config.mistakes import Mistake, ReadQueues, mistakes_of_queue
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_reader import QueueReader
from rm.scheduler.config.queue_templates import (
    LEAF_TEMPLATE,
    MANAGED_CREATION,
    QUEUE_CREATION,
    TEMPLATES,
    QueueTemplate,
    configuration_of_leaf,
)
from rm.scheduler.config.reader import Reader
from yarn.configuration import Configuration
from yarn.resource import Resource, ResourceTypes
from yarn.settings.scheduler import PREFIX, queue_key

CHILD = "<created>"
"""The name of a child that is only read; no queue can have it in a file of templates by accident."""


class TemplateMistakes:
    """Finds the mistakes in the templates of all parents. `maximum`: the largest container of any queue."""

    def __init__(self, tree: ReadQueues, types: ResourceTypes, maximum: Resource) -> None:
        self._tree = tree
        self._types = types
        self._maximum = maximum

    def found(self) -> Iterator[Mistake]:
        for parent in self._tree.queues.values():
            if parent.is_on_demand:
                continue
            if parent.managed is not None:
                yield from self._of_managed(parent)
            elif parent.creation.enabled:
                yield from self._of_creating(parent)
            yield from self._unused(parent)

    def _of_managed(self, parent: QueueConfiguration) -> Iterator[Mistake]:
        """The mistakes in the leaf template of a managed parent (ManagedParentQueue)."""
        path = f"{parent.path}.{CHILD}"
        reader = Reader(configuration_of_leaf(self._tree.reader.configuration, path))
        child = self._reader(reader).read_auto_created(path, parent)
        for mistake in self._mistakes(reader, child):
            name = _name_of(path, mistake)
            yield mistake if name is None else _moved(mistake, path, queue_key(parent.path, LEAF_TEMPLATE))

    def _of_creating(self, parent: QueueConfiguration) -> Iterator[Mistake]:
        """The mistakes in the templates for leaves and for parents (AutoCreatedQueueTemplate)."""
        path = f"{parent.path}.{CHILD}"
        template = QueueTemplate(self._tree.reader.configuration, parent.path)
        for is_leaf in (True, False):
            reader = Reader(template.configuration_of(path, is_leaf=is_leaf))
            labels = template.labels_of(path)
            child = self._reader(reader).read_dynamic(path, parent, labels=labels, is_leaf=is_leaf)
            for mistake in self._mistakes(reader, child):
                name = _name_of(path, mistake)
                source = template.source(name, is_leaf=is_leaf) if name is not None else ""
                # For parents, only mistakes in parent templates count: a common template also applies to leaves.
                if name is None or (source and (is_leaf or "parent-template." in source)):
                    yield mistake if name is None else _moved(mistake, path, source.removesuffix(name))

    def _reader(self, reader: Reader) -> QueueReader:
        return QueueReader(reader, self._types, self._maximum)

    def _mistakes(self, reader: Reader, child: QueueConfiguration) -> Iterator[Mistake]:
        """The mistakes of a child, without those of keys that cannot be read."""
        tree = self._tree
        queues = {**tree.queues, child.path: child}
        faulty = {fault.key for fault in reader.faults}
        read = ReadQueues(reader, queues, tree.minimum_allocation, tree.counts_memory_only)
        return (mistake for mistake in mistakes_of_queue(read, child) if mistake.key not in faulty)

    def _unused(self, parent: QueueConfiguration) -> Iterator[Mistake]:
        """Templates of a queue that creates none."""
        configuration = self._tree.reader.configuration
        ways = (
            (parent.managed is None, (LEAF_TEMPLATE,), MANAGED_CREATION),
            (not parent.creation.enabled, TEMPLATES, QUEUE_CREATION),
        )
        for is_off, templates, way in ways:
            keys = _keys_below(configuration, parent.path, templates) if is_off else []
            if keys:
                enabled = queue_key(parent.path, f"{way}enabled")
                others = f", nor have the {len(keys) - 1} other keys of its templates" if len(keys) > 1 else ""
                problem = f"has no effect{others}: {parent.path} creates no queues in this way"
                yield Mistake(keys[0], problem, f"set {enabled} to true, or remove the templates")


def _keys_below(configuration: Configuration, path: str, templates: tuple[str, ...]) -> list[str]:
    return [key for template in templates for key in configuration.keys(queue_key(path, template))]


def _name_of(path: str, mistake: Mistake) -> str | None:
    """The property that a mistake of the child at `path` is about; None if the key is not the child's."""
    own = queue_key(path, "")
    return mistake.key.removeprefix(own) if mistake.key.startswith(own) else None


def _moved(mistake: Mistake, path: str, template: str) -> Mistake:
    """The mistake of a child as that of its template, the prefix of whose keys is `template`."""
    created = f"each queue created by {template[len(PREFIX) : -1]}"
    texts = (text.replace(queue_key(path, ""), template) for text in (mistake.key, mistake.problem, mistake.remedy))
    key, problem, remedy = (text.replace(path, created) for text in texts)
    return Mistake(key, problem.replace("the queue ", "a queue created with it ", 1), remedy)
