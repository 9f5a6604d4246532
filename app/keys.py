"""What handlers find in the application, by type."""

from __future__ import annotations

from aiohttp import web

from app.assets.catalog import Catalog
from app.bus import Bus
from app.config import Config
from app.database import Database
from app.definitions import Definitions
from app.files import Files
from app.history import History
from app.jobs import Jobs
from app.logs import Logs
from app.metrics import Metrics
from app.startup import Startup
from app.users import Users

CONFIG = web.AppKey("config", Config)
FILES = web.AppKey("files", Files)
USERS = web.AppKey("users", Users)
BUS = web.AppKey("bus", Bus)
DATABASE = web.AppKey("database", Database)
HISTORY = web.AppKey("history", History)
STARTUP = web.AppKey("startup", Startup)
JOBS = web.AppKey("jobs", Jobs)
DEFINITIONS = web.AppKey("definitions", Definitions)
LOGS = web.AppKey("logs", Logs)
METRICS = web.AppKey("metrics", Metrics)
# only there with --enable-assets
CATALOG = web.AppKey("catalog", Catalog)
