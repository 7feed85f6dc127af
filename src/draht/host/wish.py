"""``model=H100,memory>=80Gi,count=2``: a request in words, and the claim that it stands for.

Owns the words. Each becomes a CEL condition about the attributes that the vendors' DRA drivers publish, so what is
meant can be printed and used on Kubernetes unchanged.

Memory is nominal: vendors sell a GPU as one of 48 GB that has 45 GiB left for use (ECC and firmware take the rest), so
``memory>=48Gi`` accepts 7 % less. The printed claim has the exact amount.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from draht.api.meta import ObjectMeta
from draht.api.quantity import Quantity, QuantityError
from draht.api.resource import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from draht.driver.vendors import amd, nvidia
from draht.host.errors import SelectionError

__all__ = ["claim_of"]

_TERM: Final = re.compile(r"\s*([a-z]+)\s*(>=|<=|!=|=|>|<|~)\s*(.+?)\s*", re.DOTALL)
_VERSION: Final = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")
_NOMINAL: Final = (93, 100)
_VENDORS: Final = {"nvidia": nvidia.DRIVER, "amd": amd.DRIVER}
_ORDER: Final = {">=": ">= 0", "<=": "<= 0", "=": "== 0", "!=": "!= 0", ">": "> 0", "<": "< 0"}


def claim_of(texts: Sequence[str], *, name: str = "draht-run") -> ResourceClaim:
    """The claim of requests in words, one request for each text.

    Raises:
        SelectionError: A text can't be read; the message says which part, the hint what can be written.
    """
    requests = tuple(_request(text, "gpu" if len(texts) == 1 else f"gpu-{number}") for number, text in enumerate(texts))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
    )


def _request(text: str, name: str) -> DeviceRequest:
    terms: list[tuple[str, str, str]] = []
    for part in text.split(","):
        found = _TERM.fullmatch(part)
        if found is None or found[1] not in {*_WORDS, "count", "vendor"}:
            raise SelectionError(
                f"`{part.strip()}` can't be read in the request `{text}`",
                hint=f"write WORD=VALUE with one of {', '.join(sorted({*_WORDS, 'count', 'vendor'}))}; "
                "versions and memory also take >=, <=, >, <, and model takes ~ with a pattern",
            )
        terms.append((found[1], found[2], found[3]))
    vendor = _only(terms, "vendor", text, "nvidia")
    if vendor not in _VENDORS:
        raise SelectionError(f"vendor `{vendor}` isn't known", hint=f"there are {', '.join(_VENDORS)}")
    count = _only(terms, "count", text, "1")
    if count != "all" and not re.fullmatch("[1-9][0-9]{0,3}", count):
        raise SelectionError(f"`{count}` is no number of devices from 1 on, or all", hint="write count=2 or count=all")
    partition = any(word == "profile" for word, _, _ in terms)
    conditions = [
        _WORDS[word](_VENDORS[vendor], relation, value)
        for word, relation, value in terms
        if word not in {"count", "vendor"}
    ]
    return DeviceRequest(
        name=name,
        exactly=ExactDeviceRequest(
            device_class_name="mig.nvidia.com" if partition else _VENDORS[vendor],
            selectors=tuple(DeviceSelector(cel=CELDeviceSelector(expression=each)) for each in conditions),
            allocation_mode="All" if count == "all" else "ExactCount",
            count=0 if count == "all" else int(count),
        ),
    )


def _only(terms: Sequence[tuple[str, str, str]], word: str, text: str, default: str) -> str:
    found = [(relation, value) for each, relation, value in terms if each == word]
    if len(found) > 1 or any(relation != "=" for relation, _ in found):
        raise SelectionError(f"`{word}` takes one value, in the request `{text}`", hint=f"write {word}={default}")
    return found[0][1] if found else default


def _attribute(driver: str, name: str) -> str:
    return f'device.attributes["{driver}"].{name}'


def _model(driver: str, relation: str, value: str) -> str:
    """A word of the product's name, in whatever case; with ``~`` a regular expression for a part of it."""
    if relation not in {"=", "!=", "~"}:
        raise _relation("model", relation, "=, != or ~")
    pattern = value if relation == "~" else rf"(?i)\b{re.escape(value)}\b"
    test = f"{_attribute(driver, 'productName')}.matches({_quoted(pattern)})"
    return f"!{test}" if relation == "!=" else test


def _text(word: str, attribute: str) -> Callable[[str, str, str], str]:
    def condition(driver: str, relation: str, value: str) -> str:
        if relation not in {"=", "!="}:
            raise _relation(word, relation, "= or !=")
        return f"{_attribute(driver, attribute)} {'==' if relation == '=' else '!='} {_quoted(value)}"

    return condition


def _version(word: str, attribute: str) -> Callable[[str, str, str], str]:
    def condition(driver: str, relation: str, value: str) -> str:
        found = _VERSION.fullmatch(value)
        if found is None or relation not in _ORDER:
            raise SelectionError(f"`{word}{relation}{value}` compares no version", hint=f"write {word}>=9.0")
        version = ".".join(str(int(part or 0)) for part in found.groups())
        return f'{_attribute(driver, attribute)}.compareTo(semver("{version}")) {_ORDER[relation]}'

    return condition


def _memory(driver: str, relation: str, value: str) -> str:
    if relation not in _ORDER:
        raise _relation("memory", relation, ">=, <=, >, <, = or !=")
    try:
        amount = Quantity(value)
    except QuantityError:
        raise SelectionError(f"`{value}` is no amount of memory", hint="write memory>=80Gi") from None
    if relation == ">=":
        part, whole = _NOMINAL
        text = f"{amount.value() * part // whole >> 20}Mi"
    else:
        text = str(amount)
    return f'device.capacity["{driver}"].memory.compareTo(quantity("{text}")) {_ORDER[relation]}'


def _numa(_driver: str, relation: str, value: str) -> str:
    if relation not in {"=", "!="} or not re.fullmatch("[0-9]{1,4}", value):
        raise SelectionError(f"`numa{relation}{value}` names no NUMA node", hint="write numa=0")
    return f'device.attributes["resource.kubernetes.io"].numaNode {"==" if relation == "=" else "!="} {int(value)}'


def _relation(word: str, relation: str, known: str) -> SelectionError:
    return SelectionError(f"`{word}` can't be compared with `{relation}`", hint=f"use {known}")


def _quoted(text: str) -> str:
    """A CEL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


_WORDS: Final[dict[str, Callable[[str, str, str], str]]] = {
    "architecture": _text("architecture", "architecture"),
    "compute": _version("compute", "cudaComputeCapability"),
    "driver": _version("driver", "driverVersion"),
    "memory": _memory,
    "model": _model,
    "numa": _numa,
    "profile": _text("profile", "profile"),
    "uuid": _text("uuid", "uuid"),
}
