"""What is wrong with a file of SQLite, in words for whoever has to mend it?

Never the text of the error: it may hold a path or a statement.
"""

import errno
import sqlite3

_OF_SQLITE = {
    sqlite3.SQLITE_BUSY: "locked by another process",
    sqlite3.SQLITE_LOCKED: "locked by another process",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it may only be read",
    sqlite3.SQLITE_PERM: "this user may not open it",
    sqlite3.SQLITE_AUTH: "this user may not open it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is no database",
    sqlite3.SQLITE_IOERR: "the disk fails",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work",
    sqlite3.SQLITE_NOLFS: "it is too large for this disk",
}
_OF_SYSTEM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EROFS: "the disk may only be read",
    errno.EACCES: "this user may not open it",
    errno.EPERM: "this user may not open it",
    errno.ENOENT: "its folder does not exist",
    errno.ENOTDIR: "its folder does not exist",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "its lock is a link to somewhere else",
    errno.EIO: "the disk fails",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
}


def meaning_of(error: Exception) -> str:
    """A short clause, an error of ours by its `meaning`; else the name of the error's type."""
    own: object = getattr(error, "meaning", None)
    if isinstance(own, str):
        return own
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and (words := _OF_SQLITE.get(code & 0xFF)):
        return words
    if isinstance(error, OSError) and (words := _OF_SYSTEM.get(error.errno or 0)):
        return words
    return type(error).__name__


__all__ = ["meaning_of"]
