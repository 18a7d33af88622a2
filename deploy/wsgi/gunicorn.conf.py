# SPDX-License-Identifier: Apache-2.0
"""Treeclaim on gunicorn. Start it with: gunicorn --config gunicorn.conf.py.

Install gunicorn into the virtual environment in which treeclaim and treeclaim-placement-names are;
without the latter the application is treeclaim.wsgi:application. Where options and database are
configured: docs/operate.md; usually /etc/placement/placement.conf.
"""

wsgi_app = "placement.wsgi.api:application"

bind = ["127.0.0.1:8778"]

# The prefix under which the service is. At the root of the host leave this line out.
raw_env = ["SCRIPT_NAME=/placement"]

# Processes hold the inventory in memory, each its own copy; threads share one.
workers = 2
worker_class = "gthread"
threads = 4

# Threads and connections to the database do not survive a fork.
preload_app = False

# Seconds of silence after which a process counts as hung, and that a reload waits for requests.
timeout = 120
graceful_timeout = 60

# Clients keep connections for longer than the two seconds that are the default.
keepalive = 75

# Connections of a process, those that are kept included. gunicorn has no deadline for clients that
# send or read slowly, and each holds a thread: put a proxy that buffers before it.
worker_connections = 1000

# Characters of a request's first line, 0 for any number: queries of schedulers are long.
limit_request_line = 0

# The service writes a line for each request itself.
accesslog = None
errorlog = "-"
