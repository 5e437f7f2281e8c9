"""Members that a body cannot do without, by its shape; checked for every body and written into the OpenAPI document.

Source: API document, Endpoints, which marks none as required. Assumed: these, because the answer could not be made, or
the resource could not work, without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from edge_operator.api import agents, edges, events, modules, ssh, tls
from edge_operator.api.wire import Body

REQUIRED: Final[Mapping[type[Body], tuple[str, ...]]] = {
    agents.AgentIngressCreate: ("domain",),
    ssh.SSHUserCertificateCreate: ("ssh_certificate_authority_id", "public_key"),
    ssh.SSHHostCertificateCreate: ("ssh_certificate_authority_id", "public_key"),
    tls.TLSCertificateCreate: ("certificate_pem", "private_key_pem"),
    edges.HTTPSRouteCreate: ("match",),
    modules.EndpointBackendMutate: ("backend_id",),
    modules.EndpointWebhookValidationMutate: ("provider",),
    modules.EndpointOAuthMutate: ("provider",),
    events.EventDestinationCreate: ("target",),
    events.BatchStreamMutate: ("auth", "delivery_stream_arn"),
    events.DataStreamMutate: ("auth", "stream_arn"),
    events.LogGroupMutate: ("auth", "log_group_arn"),
    events.MonitoringMutate: ("api_key",),
    events.AWSRoleMutate: ("role_arn",),
    events.AWSCredsMutate: ("cloud_access_key_id", "cloud_secret_access_key"),
}
