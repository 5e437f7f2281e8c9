"""Identifiers of webhook providers.

Source: API document, Webhook verification: the provider must be a supported one, and a secret is required for every
provider except one cloud notification service. Assumed: which ones; compared without case, stored in lower case.
"""

from __future__ import annotations

from typing import Final

UNSIGNED: Final = "aws_sns"
"""The cloud notification service that needs no secret: it signs with a certificate of its own."""

WEBHOOK_PROVIDERS: Final = frozenset(
    {
        "aftership",
        "airship",
        "alchemy",
        "autodesk",
        "aws_sns",
        "bitbucket",
        "bolt",
        "box",
        "brex",
        "buildkite",
        "calendly",
        "castle",
        "chargify",
        "circleci",
        "clearbit",
        "clerk",
        "coinbase",
        "contentful",
        "docusign",
        "dropbox",
        "facebook_graph_api",
        "facebook_messenger",
        "frame_io",
        "github",
        "gitlab",
        "go1",
        "heroku",
        "hosted_hooks",
        "hubspot",
        "hygraph",
        "instagram",
        "intercom",
        "launch_darkly",
        "mailchimp",
        "mailgun",
        "microsoft_teams",
        "modern_treasury",
        "mongodb",
        "mux",
        "orb",
        "orbit",
        "pagerduty",
        "pinwheel",
        "plivo",
        "pusher",
        "sendgrid",
        "sentry",
        "shopify",
        "signal_sciences",
        "slack",
        "sonatype",
        "square",
        "stripe",
        "svix",
        "terraform",
        "tiktok",
        "trendmicro_conformity",
        "twilio",
        "twitter",
        "typeform",
        "vmware",
        "webex",
        "whatsapp",
        "worldline",
        "xero",
        "youtube",
        "zendesk",
        "zoom",
    }
)
