"""Every reason that a condition or an event may carry. A closed list: a status with another word is a defect.

Source: kstatus and the Kubernetes API conventions for conditions.
"""

from __future__ import annotations

from enum import StrEnum


class Ready(StrEnum):
    """Ready is True."""

    AVAILABLE = "Available"
    OBSERVED = "Observed"
    CONNECTED = "Connected"
    ONLINE = "Online"
    COMPLETED = "Completed"
    SUCCESSOR_UNKNOWN = "SuccessorUnknown"


class Waits(StrEnum):
    """Ready is False and Reconciling is True: time, or something that comes by itself, will cure it."""

    PROGRESSING = "Progressing"
    REFERENCE_NOT_READY = "ReferenceNotReady"
    CONNECTION_NOT_READY = "ConnectionNotReady"
    SECRET_NOT_READY = "SecretNotReady"  # noqa: S105 - a reason, not a password
    RATE_LIMITED = "RateLimited"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"
    RECOVERING = "Recovering"
    CONFLICT = "Conflict"
    HEALING_SLOWED = "HealingSlowed"
    DELETING = "Deleting"
    DELETION_BLOCKED = "DeletionBlocked"


class Stalls(StrEnum):
    """Ready is False and Stalled is True: somebody has to change something."""

    INVALID_SPEC = "InvalidSpec"
    INVALID_REFERENCE = "InvalidReference"
    DUPLICATE_REFERENCE = "DuplicateReference"
    REFERENCE_CYCLE = "ReferenceCycle"
    INVALID_KEY_PAIR = "InvalidKeyPair"
    INVALID_CERTIFICATE = "InvalidCertificate"
    SECRET_CONFLICT = "SecretConflict"  # noqa: S105 - a reason, not a password
    PERMISSION_DENIED = "PermissionDenied"
    OWNERSHIP_CONFLICT = "OwnershipConflict"
    REMOTE_MISSING = "RemoteMissing"
    OPERATION_UNSUPPORTED = "OperationUnsupported"
    LIFETIME_TOO_SHORT = "LifetimeTooShort"
    IMMUTABLE_FIELD_CHANGED = "ImmutableFieldChanged"
    REFERENCE_NOT_PERMITTED = "ReferenceNotPermitted"
    CREATE_OUTCOME_UNKNOWN = "CreateOutcomeUnknown"
    AUTHENTICATION_FAILED = "AuthenticationFailed"
    ACCOUNT_MISMATCH = "AccountMismatch"
    SESSION_NOT_FOUND = "SessionNotFound"
    UPDATE_UNAVAILABLE = "UpdateUnavailable"
    UPDATE_DISABLED = "UpdateDisabled"
    UPDATE_IN_PROGRESS = "UpdateInProgress"
    UPDATE_PENDING_RESTART = "UpdatePendingRestart"
    RESTART_UNSUPPORTED = "RestartUnsupported"
    COMMAND_REFUSED = "CommandRefused"
    OUTCOME_UNKNOWN = "OutcomeUnknown"


class Events(StrEnum):
    """Something was done or found; never written on a pass that changed nothing."""

    CREATED = "Created"
    UPDATED = "Updated"
    DELETED = "Deleted"
    RETAINED = "Retained"
    ADOPTED = "Adopted"
    RECOVERED = "Recovered"
    RESTORED = "Restored"
    REPLACED = "Replaced"
    DUPLICATE_DELETED = "DuplicateDeleted"
    DRIFT_CORRECTED = "DriftCorrected"
    CERTIFICATE_ISSUED = "CertificateIssued"
    CERTIFICATE_UPLOADED = "CertificateUploaded"
    TOKEN_ISSUED = "TokenIssued"  # noqa: S105 - a reason, not a password
    ABANDONED = "Abandoned"
    COMMANDED = "Commanded"
    COMMAND_FAILED = "CommandFailed"


MEANINGS: dict[StrEnum, str] = {
    Ready.AVAILABLE: "The remote object is as the spec says.",
    Ready.OBSERVED: "The remote object exists; managementPolicy Observe only reports.",
    Ready.CONNECTED: "The service accepts the connection's key.",
    Ready.ONLINE: "The agent is online.",
    Ready.COMPLETED: "The service accepted the command; a session that follows is recorded.",
    Ready.SUCCESSOR_UNKNOWN: "The agent was told to restart; which session follows cannot be told.",
    Waits.PROGRESSING: "Work is under way.",
    Waits.REFERENCE_NOT_READY: "A resource that the spec names is absent, has no id yet, or is being deleted.",
    Waits.CONNECTION_NOT_READY: "The connection cannot be used now; its own status says why.",
    Waits.SECRET_NOT_READY: "A Secret or a key in it that the spec names is absent.",
    Waits.RATE_LIMITED: "The service asked for a pause.",
    Waits.SERVICE_UNAVAILABLE: "The service does not answer, or answers with an error of its own.",
    Waits.RECOVERING: "It is unknown whether a request arrived; the service is searched before it is sent again.",
    Waits.CONFLICT: "Another object holds what this one asks for, such as a hostport.",
    Waits.HEALING_SLOWED: "Something keeps changing the remote object; it is set right at longer and longer intervals.",
    Waits.DELETING: "The resource or its namespace is being deleted.",
    Waits.DELETION_BLOCKED: "Something still uses this resource.",
    Stalls.INVALID_SPEC: "The spec, or a value that it refers to, is refused; the message says where and why.",
    Stalls.INVALID_REFERENCE: "An id has the wrong prefix, or a kind does not fit.",
    Stalls.DUPLICATE_REFERENCE: "Two entries mean one remote object.",
    Stalls.REFERENCE_CYCLE: "Resources refer to each other in a circle.",
    Stalls.INVALID_KEY_PAIR: "A key cannot be read, or certificate and key do not belong together.",
    Stalls.INVALID_CERTIFICATE: "The service issued something other than what was asked for; it was not published.",
    Stalls.SECRET_CONFLICT: "A Secret of that name exists and belongs to somebody else.",
    Stalls.PERMISSION_DENIED: "The service does not permit the operation to this API key.",
    Stalls.OWNERSHIP_CONFLICT: "The remote object belongs to another resource.",
    Stalls.REMOTE_MISSING: "The remote object vanished, and making a new one is not the same thing.",
    Stalls.OPERATION_UNSUPPORTED: "The service does not offer an operation that is needed.",
    Stalls.LIFETIME_TOO_SHORT: "What is issued would be due for renewal at once, or its fixed end has passed.",
    Stalls.IMMUTABLE_FIELD_CHANGED: "A field that is fixed at creation was changed.",
    Stalls.REFERENCE_NOT_PERMITTED: "The connection does not admit resources of this namespace.",
    Stalls.CREATE_OUTCOME_UNKNOWN: "A creation may have arrived, and without owner markers nobody can tell.",
    Stalls.AUTHENTICATION_FAILED: "The service refuses the connection's key.",
    Stalls.ACCOUNT_MISMATCH: "None of the objects that were made through the connection is in its account.",
    Stalls.SESSION_NOT_FOUND: "The session is not online; a restart gives an agent another one.",
    Stalls.UPDATE_UNAVAILABLE: "The agent runs the latest version of its major version.",
    Stalls.UPDATE_DISABLED: "The agent's configuration disables update checks.",
    Stalls.UPDATE_IN_PROGRESS: "The agent is updating itself at this moment.",
    Stalls.UPDATE_PENDING_RESTART: "The agent has updated itself already and waits for a restart.",
    Stalls.RESTART_UNSUPPORTED: "The agent's operating system is not a Unix, so that it cannot restart itself.",
    Stalls.COMMAND_REFUSED: "The service refused the command; the message says why.",
    Stalls.OUTCOME_UNKNOWN: "Whether the command arrived is not known; it is not repeated.",
    Events.CREATED: "A remote object was created.",
    Events.UPDATED: "The remote object was changed because the spec changed.",
    Events.DELETED: "The remote object was deleted.",
    Events.RETAINED: "The resource is gone and its remote object was kept; the message says why.",
    Events.ADOPTED: "An existing remote object came under management.",
    Events.RECOVERED: "An object whose creation was interrupted was found again.",
    Events.RESTORED: "A resource from a backup took over the remote object that its former self made.",
    Events.REPLACED: "A new remote object took the place of an old one.",
    Events.DUPLICATE_DELETED: "A further object with the resource's marker was found and deleted.",
    Events.DRIFT_CORRECTED: "A change made elsewhere was undone.",
    Events.CERTIFICATE_ISSUED: "A certificate was issued and written to its Secret.",
    Events.CERTIFICATE_UPLOADED: "A certificate was uploaded from its Secret.",
    Events.TOKEN_ISSUED: "A token was issued and written to its Secret.",
    Events.ABANDONED: "The resource was let go and its remote object left, as asked.",
    Events.COMMANDED: "An agent was told, and the service accepted it.",
    Events.COMMAND_FAILED: "A command to an agent was refused, or what became of it is not known.",
}
"""What each reason means, for the reference page. A test holds it complete."""
