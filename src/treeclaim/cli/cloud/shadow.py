# SPDX-License-Identifier: Apache-2.0
"""`treeclaim shadow`: a proxy before a running Placement that shows what Treeclaim would answer."""

import argparse
import signal
import threading
from contextlib import closing
from typing import Any

import prometheus_client

from treeclaim.cli.output import FAILED, PORT, CommandError, complain, port, say, say_document
from treeclaim.shadow.observer import Observer
from treeclaim.shadow.proxy import proxy
from treeclaim.shadow.report import Report, Verdict

_DESCRIPTION = """\
Clients that are pointed here get Placement's answers. After the client has its answer, each GET is
also sent to Treeclaim, and differences are reported at the end (Ctrl-C or SIGTERM) and as metrics.
Treeclaim works on a copy of the data, or on the same database; nothing is written there. Known
differences have the numbers of docs/differences.md. Exit status: 0 if nothing else differs, 1
if something does, 2 if the command failed.
"""


def add_to(commands: Any) -> None:
    """Add the command."""
    shadow = commands.add_parser(
        "shadow",
        help="compare a running Placement with Treeclaim by the requests of its clients",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shadow.add_argument(
        "--upstream", required=True, metavar="URL", help="the running Placement, which answers"
    )
    shadow.add_argument(
        "--endpoint",
        default=f"http://127.0.0.1:{PORT}",
        metavar="URL",
        help="the Treeclaim that is asked the same (%(default)s)",
    )
    shadow.add_argument("--host", default="127.0.0.1", help="where clients connect (%(default)s)")
    shadow.add_argument("--port", type=port, default=PORT + 2, help="likewise (%(default)s)")
    shadow.add_argument(
        "--metrics-port", type=port, metavar="PORT", help="port for Prometheus counters, on --host"
    )
    shadow.add_argument("--json", action="store_true", help="print the result as JSON")
    shadow.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Answer until somebody ends it, then tell what differed."""
    report = Report()
    ended = threading.Event()
    try:
        with (
            closing(Observer(options.endpoint, options.upstream, report)) as observer,
            proxy(options.host, options.port, options.upstream, observer, report) as server,
        ):
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            if options.metrics_port is not None:
                prometheus_client.start_http_server(
                    options.metrics_port, options.host, registry=report.registry
                )
            complain(
                f"Answering on http://{options.host}:{server.server_port} with what "
                f"{options.upstream} answers; {options.endpoint} is asked the same"
            )
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: ended.set())
            ended.wait()
            server.shutdown()
            thread.join()
    except (OSError, ValueError) as error:
        raise CommandError(str(error), exit_code=FAILED) from error
    if options.json:
        say_document(report.document())
    else:
        say(*report.lines())
    return 1 if report.verdicts[Verdict.DIFFERENT] else 0
