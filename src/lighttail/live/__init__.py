"""The service: experiments that several programs share, where every reward counts exactly once
(docs/live.md)"""

from lighttail.live.desk import Desk
from lighttail.live.errors import Refused
from lighttail.live.journal import Journal
from lighttail.live.office import Office, open_journal

__all__ = ["Desk", "Journal", "Office", "Refused", "open_journal"]
