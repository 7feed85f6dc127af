"""``draht ps``: who holds which GPU, which are prepared for pods, who waits, and what happened."""

from __future__ import annotations

import click

from draht.cli.output import emit, output_option, table

__all__ = ["ps"]


def _short(container: str) -> str:
    """The first twelve digits of an id, as engines show it; runc's ids are names and stay whole."""
    return container[:12] if len(container) == 64 else container


@click.command(short_help="Show who holds which GPU on this machine.")
@output_option("table", "json", "yaml")
@click.option("--audit", "audit_trail", is_flag=True, help="Show what happened to holds, oldest first.")
def ps(output: str, audit_trail: bool) -> None:
    """Show who holds which GPU on this machine, which are prepared for pods, and who waits.

    Reconciles with the engines first. Who may only read the database sees what it says without that.
    """
    from draht.driver.database import Database
    from draht.driver.errors import StateError
    from draht.driver.holds import in_short, one_line
    from draht.host.local import database_directory, local_host, local_inventory
    from draht.host.status import Outside, settle, status, trail, used_outside

    def say(text: str) -> None:
        click.echo(text, err=True)

    problems: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
    try:
        host = local_host(say)
        state = settle(host)
        problems, database = tuple(state.problems), host.database
        if host.cache is not None and not audit_trail:
            outside = used_outside(host, local_inventory(host.cache, profile=None, kind=None)[0], state)
    except StateError as error:
        database = Database(database_directory())
        if not database.path.exists():
            raise
        say(f"note: not reconciled with the engines, {error}")
    if audit_trail:
        entries = trail(database)
        if output != "table":
            emit(entries, output)
        else:
            rows = [(entry.at, entry.hold, entry.event, entry.detail, entry.pid, entry.uid) for entry in entries]
            click.echo(table(("AT", "HOLD", "EVENT", "DETAIL", "PID", "UID"), rows))
        return
    found = status(database, outside=outside, problems=problems)
    if output != "table":
        emit(found, output)
        return
    holds = [
        (
            hold.id,
            hold.state,
            in_short(hold.devices),
            hold.machine + (" (simulated)" if hold.simulated else ""),
            hold.engine,
            _short(hold.container or ""),
            hold.user,
            hold.since,
            one_line(hold.command),
        )
        for hold in found.holds
    ]
    click.echo(table(("HOLD", "STATE", "DEVICES", "MACHINE", "ENGINE", "CONTAINER", "USER", "SINCE", "COMMAND"), holds))
    if found.claims:
        prepared = [
            (
                f"{claim.namespace}/{claim.name}",
                claim.state,
                in_short(claim.devices),
                claim.driver,
                claim.uid,
                claim.since,
            )
            for claim in found.claims
        ]
        click.echo("\n" + table(("CLAIM", "STATE", "DEVICES", "DRIVER", "UID", "SINCE"), prepared))
    if found.waiting:
        waiting = [
            (ticket.ticket, ticket.wanted, ticket.user, ticket.since, ticket.until, one_line(ticket.command))
            for ticket in found.waiting
        ]
        click.echo("\n" + table(("TICKET", "WANTED", "USER", "SINCE", "UNTIL", "COMMAND"), waiting))
    if found.outside:
        uses = [(use.device, use.device_id, use.used_by) for use in found.outside]
        click.echo("\n" + table(("USED WITHOUT A HOLD", "ID", "BY"), uses))
