"""The Event of the core group, and the pointer to the object it is about."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList
from draht.api.wire import Int32, MicroTime, Time, Wire, always

__all__ = ["Event", "EventList", "EventSeries", "EventSource", "ObjectReference"]


class ObjectReference(Wire, frozen=True, kw_only=True):
    """A pointer to any object, or to a part of it."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Wire, frozen=True, kw_only=True):
    """Who reported an event (old form)."""

    component: str = ""
    host: str = ""


class EventSeries(Wire, frozen=True, kw_only=True):
    """How often an event was repeated."""

    count: Int32 = 0
    last_observed_time: MicroTime | None = None


class Event(Object, frozen=True, kw_only=True):
    """Something that happened to an object."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Event"] = always("Event")
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    count: Int32 = 0
    type: str = ""
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class EventList(ObjectList, frozen=True, kw_only=True):
    """Several events."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["EventList"] = always("EventList")
    items: tuple[Event, ...] = ()
