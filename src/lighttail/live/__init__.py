"""The service: many such experiments in a journal that programs share; every reward counts exactly once
(docs/live.md)"""

from lighttail.live.desk import Desk
from lighttail.live.errors import Refused
from lighttail.live.journal import Journal, Reader
from lighttail.live.office import Office, open_journal, open_reader

__all__ = ["Desk", "Journal", "Office", "Reader", "Refused", "open_journal", "open_reader"]
