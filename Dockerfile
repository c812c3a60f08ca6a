# A small image of Keyward: one static binary, a user without rights, data in /data.
#
#   docker build -t keyward .
#   docker run --read-only --cap-drop ALL -p 127.0.0.1:7480:7480 -v keyward:/data keyward
#
# docs/deployment.md has the first start, keys, TLS and the rest.
#
# Base images are pinned by the digest of their multi-platform index: the tag says what it is, the digest
# what is taken. docs/deployment.md says how to move to a newer one.

FROM rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2 AS build
# LMDB and ring are built from C and assembler.
RUN apk add --no-cache musl-dev gcc make perl
WORKDIR /src
COPY . .
# The toolchain of the image, not one that rustup would fetch.
RUN rm -f rust-toolchain.toml \
    && cargo build --release --locked -p keyward-cli \
    && mkdir -p /out/data \
    && cp target/release/keyward /out/keyward

FROM alpine:3.22@sha256:14358309a308569c32bdc37e2e0e9694be33a9d99e68afb0f5ff33cc1f695dce
# Certificates of authorities: for keys of issuers (https) and for PostgreSQL with TLS.
RUN apk add --no-cache ca-certificates-bundle
COPY --from=build /out/keyward /usr/local/bin/keyward
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 7480
# In a container the address is everybody's: a proxy before it terminates TLS, unless
# KEYWARD_TLS_CERT and KEYWARD_TLS_KEY are set, and command and health check are changed.
ENV KEYWARD_STORE=embedded:/data/store \
    KEYWARD_CACHE=/data/registries \
    KEYWARD_LISTEN=0.0.0.0:7480 \
    KEYWARD_LOG=json \
    KEYWARD_LOG_LEVEL=warn
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:7480/readyz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["keyward"]
CMD ["serve", "--plaintext"]
