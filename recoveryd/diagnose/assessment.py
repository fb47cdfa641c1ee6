"""Tell of one session whether it is stuck: what all that list stuck sessions, or count them, go by."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recoveryd.clients import SessionStatus, Store, root_title
from recoveryd.core import UNREADABLE, Diagnosis, Entry, Failure, RecoverydError, Refused, StoreError
from recoveryd.diagnose.context import Context
from recoveryd.diagnose.diagnosis import diagnose, failed_since
from recoveryd.diagnose.earlier_repairs import holding_repair
from recoveryd.diagnose.left_alone import left_alone


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a session ended in that may keep it from going on, and what was done about that.

    `repaired`: by which recovery, where that still holds, and `late` what its user has to do yet. `ignored`: its user
    wants it left alone. `trouble`: what can't be read, so that no repair can be planned.
    """

    diagnosis: Diagnosis
    title: str = ""
    repaired: Entry | None = None
    late: str = ""
    ignored: bool = False
    trouble: str = ""

    @property
    def stuck(self) -> bool:
        """Whether its next prompt would fail for what is stored."""
        return self.repaired is None and self.diagnosis.stuck


def assess(context: Context, store: Store, session: str, look: SessionStatus | None = None) -> Assessment | None:
    """Assess one session, for all that list stuck ones; None where nothing keeps it from going on. Raises nothing: what
    goes wrong is `trouble`.

    `look`: what the store tells of the session now, if it was asked already.
    """
    found = Assessment(Diagnosis(Failure(store.id, session, "", 0), None, code=UNREADABLE))
    try:
        diagnosis = diagnose(context, store, session, look)
        if diagnosis is None:
            return None
        found = replace(found, title=root_title(store, session))
        holding = holding_repair(context, store, diagnosis)
        if holding is not None:
            done, late = holding
            since = failed_since(store, diagnosis, done.time * 1000) if not late else None
            if since is not None:  # an empty account, say, that its next prompt met
                return replace(found, diagnosis=since)
            if done.kind is not None and done.kind is not diagnosis.kind:
                diagnosis = replace(diagnosis, refused=Refused(done.kind))
            return replace(found, diagnosis=diagnosis, repaired=done, late=late)
        try:
            return replace(found, diagnosis=diagnosis, ignored=left_alone(context, store, session))
        except StoreError:
            raise
        except RecoverydError as error:  # the list of what is ignored: nothing is wrong with the session
            return replace(found, diagnosis=diagnosis, trouble=f"not repaired: {error}")
    except RecoverydError as error:
        return replace(found, trouble=f"can't be read: {error.in_a_line}")
    except Exception as error:  # one odd record must not end the look at all the others
        return replace(found, trouble=f"a fault of recoveryd: {type(error).__name__}: {error}")
