# Image of the server, for machines without a GPU:
#     docker build -t narrlit .
#     docker run --rm -p 127.0.0.1:8000:8000 -v narrlit:/data narrlit
# docs/getting-started.md describes it.
FROM python:3.12-slim AS build

# Builds of torch without CUDA; pip reads this variable.
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu

WORKDIR /build
COPY constraints.txt ./
# torch first: a change of the source leaves its layer as it is.
RUN python -m venv /opt/narrlit \
    && /opt/narrlit/bin/pip install --no-cache-dir -c constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY src src
RUN /opt/narrlit/bin/pip install --no-cache-dir -c constraints.txt '.[serve]'

FROM python:3.12-slim

RUN useradd --create-home --uid 1000 narrlit \
    && install --directory --owner narrlit /data
COPY --from=build /opt/narrlit /opt/narrlit
ENV PATH=/opt/narrlit/bin:$PATH

USER 1000
WORKDIR /home/narrlit
VOLUME /data
EXPOSE 8000
# /health answers without a token.
HEALTHCHECK --interval=30s --timeout=10s --start-period=90s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=8)"]

# On another address than loopback, narrlit prints a token without which it answers nothing.
ENTRYPOINT ["narrlit"]
CMD ["serve", "--host", "0.0.0.0", "--data", "/data", "--no-browser"]
