# One image for both commands: `edge-operator run` (the default) and `edge-operator serve-api`.
# Any image with Python 3.11 or later at the same place in both stages will do as a base.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ARG UV_VERSION=0.13.8
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PROJECT_ENVIRONMENT=/opt/edge-operator \
    UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir --disable-pip-version-check "uv==${UV_VERSION}"
WORKDIR /src
# Dependencies first: they change less often than the code.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --frozen --no-dev --no-install-project
COPY operator operator
RUN uv sync --frozen --no-dev --no-editable

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="edge-operator" \
      org.opencontainers.image.description="A Kubernetes operator for the management API of a tunneling platform" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/edge-operator /opt/edge-operator
ENV PATH=/opt/edge-operator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
WORKDIR /tmp
EXPOSE 8080
ENTRYPOINT ["edge-operator"]
CMD ["run"]
