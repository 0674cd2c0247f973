"""Late days and extensions, in calendar days: where clocks change, two days a year have 23 or 25 hours.

A moment is in UTC and names no zone, as nbgrader stores it. A ``zone`` is the class's; None is the machine's.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo

SECOND = datetime.timedelta(seconds=1)
UNITS = {"h": datetime.timedelta(hours=1), "m": datetime.timedelta(minutes=1)}
MOST_DAYS = 3660  # ten years: anything longer is a slip of the finger, and may not be a date


def zone(name: str) -> datetime.tzinfo | None:
    """The zone of a name such as Europe/Berlin; this machine's for ""."""
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is no time zone: write it like Europe/Berlin or America/New_York"
        ) from None


def length(text: str) -> tuple[int, datetime.timedelta]:
    """A length of time: whole days, and the rest. Hours are hours, a day ends at the same time of day.

    >>> length("3d"), length("36h"), length("1.5d")
    ((3, datetime.timedelta(0)), (0, datetime.timedelta(days=1, seconds=43200)), \
(1, datetime.timedelta(seconds=43200)))
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([dhm])|0", text.strip().lower(), re.A)
    days, rest = 0, datetime.timedelta()
    if found and found[2] == "d":
        days = int(float(found[1]))
        rest = (float(found[1]) - days) * datetime.timedelta(days=1)
    elif found and found[1]:
        rest = float(found[1]) * UNITS[found[2]]
    if not found or days + rest.days > MOST_DAYS:
        raise ValueError(
            f"{text!r} is no length of time: write 3d for three days, 36h for hours, 90m for "
            f"minutes, or 0 for none, up to {MOST_DAYS}d"
        )
    return days, rest


def utc(moment: datetime.datetime, zone: datetime.tzinfo | None) -> datetime.datetime:
    """A date as a moment; one that names no zone is in the class's."""
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)


def moment(seconds: float) -> datetime.datetime:
    """Seconds since 1970 as a moment."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)


def words(moment: datetime.datetime, name: str) -> str:
    """A moment as the class's clock shows it, in words, with the zone of that name.

    >>> words(datetime.datetime(2025, 10, 31, 23), "Europe/Berlin")
    'Saturday, 1 November 2025, 00:00 (Europe/Berlin, UTC+01:00); that is the first minute of the day'
    """
    there = moment.replace(tzinfo=datetime.UTC).astimezone(zone(name))
    offset = f"{there:%z}"
    said = (
        f"{there:%A}, {there.day} {there:%B %Y, %H:%M} "
        f"({name or 'the zone of this machine'}, UTC{offset[:3]}:{offset[3:5]})"
    )
    return f"{said}; that is the first minute of the day" if f"{there:%H%M}" == "0000" else said


def _there(moment: datetime.datetime, zone: datetime.tzinfo | None) -> datetime.datetime:
    """What the clock on the wall says."""
    return moment.replace(tzinfo=datetime.UTC).astimezone(zone).replace(tzinfo=None)


def later(moment: datetime.datetime, days: int, zone: datetime.tzinfo | None) -> datetime.datetime:
    """The same time of day, that many days later."""
    # for 0 not by way of the wall clock, which shows some times twice
    return utc(_there(moment, zone) + datetime.timedelta(days), zone) if days else moment


def extended(due: datetime.datetime, text: str, zone: datetime.tzinfo | None) -> datetime.datetime:
    """The end of an extension such as 3d."""
    days, rest = length(text)
    return later(due, days, zone) + rest


def days(due: datetime.datetime, sent: datetime.datetime, zone: datetime.tzinfo | None) -> float:
    """How many days late something was sent: the whole ones, and the share of the one that has begun."""
    if sent <= due:
        return 0.0
    whole = (_there(sent, zone).date() - _there(due, zone).date()).days
    while whole and later(due, whole, zone) > sent:
        whole -= 1
    begun = later(due, whole, zone)
    return whole + (sent - begun) / (later(due, whole + 1, zone) - begun)
