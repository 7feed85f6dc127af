"""``draht release``: end a hold and give its GPUs back."""

from __future__ import annotations

import click

__all__ = ["release"]


@click.command(short_help="End a hold and give its GPUs back.")
@click.argument("hold", metavar="ID")
@click.option(
    "--force", is_flag=True, help="Also somebody else's hold, or one whose container can't be seen from here."
)
def release(hold: str, force: bool) -> None:
    """Stop and remove the container of a hold, then free its devices. ID is the hold's, or its beginning."""
    from draht.driver import holds
    from draht.driver.claims import rows as claims
    from draht.host.local import local_host
    from draht.host.release import find
    from draht.host.release import release as release_hold
    from draht.host.status import settle

    host = local_host(lambda text: click.echo(text, err=True))
    state = settle(host)
    with host.database.reading() as tx:
        found = find(holds.all_holds(tx), hold, claims.all_claims(tx))
    release_hold(host, found, state, force=force)
    click.echo(f"{found.id}: {holds.in_short(device.label for device in found.devices)} free")
